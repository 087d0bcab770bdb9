/** Every algorithm, several rules a request, charges, crashes, restarts and cuts, over a rough network. */
import type { Plan, Scenario, Step } from "../plan.js";
import type { Random } from "../random.js";
import { arrivals, countingRule, crashes, cuts, inOrder, rough } from "./traffic.js";

export const counting: Scenario = {
  name: "counting",
  about: "every algorithm, several rules a request, charges, crashes, cuts",
  plan(random: Random): Plan {
    const instances = random.whole(1, 8);
    const untilMs = random.of([5_000, 20_000, 60_000]);
    const rules = Array.from({ length: random.whole(1, 4) }, (_, i) => countingRule(random, `rule-${i}`));
    const requests = arrivals(random, { count: random.whole(50, 400), untilMs }).map(
      (atMs): Step => ({
        do: "check",
        atMs,
        instances: [random.whole(0, instances - 1)],
        attributes: { user: random.of(["ann", "bob"]) },
        ...(random.chance(0.3) ? { cost: random.whole(0, 5) } : {}),
        ...(random.chance(0.05) ? { charge: true } : {}),
      }),
    );
    return {
      instances,
      countedInstances: random.of([undefined, instances]),
      rules,
      faults: rough(random),
      deadlineMs: 200,
      rememberRefusals: random.chance(0.5),
      driftPpm: 200,
      localBound: () => Number.POSITIVE_INFINITY,
      steps: inOrder([
        ...requests,
        ...crashes(random, { instances, count: random.whole(0, 4), untilMs }),
        ...cuts(random, { instances, count: random.whole(0, 4), untilMs }),
      ]),
      endMs: untilMs + 2_000,
    };
  },
};
