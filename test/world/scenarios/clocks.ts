/** The store's clock is stepped, forwards and back, by less and by more than the windows; instances' clocks too. */
import type { Plan, Scenario, Step } from "../plan.js";
import type { Random } from "../random.js";
import { arrivals, countingRule, inOrder, rough } from "./traffic.js";

export const clocks: Scenario = {
  name: "clocks",
  about: "stepped wall clocks of the store and of instances",
  plan(random: Random): Plan {
    const instances = random.whole(1, 4);
    const untilMs = 30_000;
    const rules = Array.from({ length: random.whole(1, 3) }, (_, i) => countingRule(random, `rule-${i}`));
    const requests = arrivals(random, { count: random.whole(100, 400), untilMs }).map(
      (atMs, i): Step => ({
        do: "check",
        atMs,
        instances: [random.whole(0, instances - 1)],
        attributes: { user: "ann" },
        ...(random.chance(0.3) ? { id: `id-${i}` } : {}),
        ...(random.chance(0.2) ? { refundAfterMs: random.between(0, 2_000) } : {}),
      }),
    );
    const stepMs = (): number => random.of([-1, 1]) * random.of([1, 50, 900, 5_000, 60_000]);
    const stepped = Array.from({ length: random.whole(1, 6) }, (): Step => {
      const atMs = random.between(0, untilMs);
      return random.chance(0.7)
        ? { do: "step-store-clock", atMs, byMs: stepMs() }
        : { do: "step-clock", atMs, instance: random.whole(0, instances - 1), byMs: stepMs() };
    });
    return {
      instances,
      countedInstances: instances,
      rules,
      faults: { ...rough(random), loss: 0 },
      deadlineMs: 2_000,
      rememberRefusals: random.chance(0.5),
      driftPpm: 0,
      localBound: () => Number.POSITIVE_INFINITY,
      steps: inOrder([...requests, ...stepped]),
      endMs: untilMs + 5_000,
    };
  },
};
