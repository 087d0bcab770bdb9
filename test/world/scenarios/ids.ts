/** Requests with ids: asked again of other instances until the store answers, refunded by id from anywhere, decided anew after that. */
import type { Plan, Scenario, Step } from "../plan.js";
import type { Random } from "../random.js";
import { arrivals, countingRule, crashes, cuts, inOrder, rough } from "./traffic.js";

export const ids: Scenario = {
  name: "ids",
  about: "request ids: retries at other instances, doubled messages, refunds by id and by decision",
  plan(random: Random): Plan {
    const instances = random.whole(2, 6);
    const untilMs = random.of([5_000, 20_000]);
    const rules = Array.from({ length: random.whole(1, 3) }, (_, i) => countingRule(random, `rule-${i}`));
    const requests = arrivals(random, { count: random.whole(50, 300), untilMs }).map((atMs, i): Step => {
      // Some ids are sent for the same request again, in parallel or later.
      const id = random.chance(0.85)
        ? `id-${random.chance(0.2) ? Math.max(0, i - random.whole(0, 10)) : i}`
        : undefined;
      return {
        do: "check",
        atMs,
        instances: Array.from({ length: id === undefined ? 1 : random.whole(1, 4) }, () =>
          random.whole(0, instances - 1),
        ),
        attributes: { user: "ann" },
        ...(id === undefined ? {} : { id }),
        ...(random.chance(0.4) ? { refundAfterMs: random.between(0, 3_000) } : {}),
      };
    });
    return {
      instances,
      countedInstances: instances,
      rules,
      faults: rough(random),
      deadlineMs: random.of([20, 100]),
      driftPpm: 200,
      localBound: () => Number.POSITIVE_INFINITY,
      steps: inOrder([
        ...requests,
        ...crashes(random, { instances, count: random.whole(0, 3), untilMs }),
        ...cuts(random, { instances, count: random.whole(0, 3), untilMs }),
      ]),
      endMs: untilMs + 5_000,
    };
  },
};
