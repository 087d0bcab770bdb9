/** Long windows and quiet clients on many instances: hours on end, in which counters, records and leases end by themselves. */
import type { Plan, Scenario, Step } from "../plan.js";
import type { Random } from "../random.js";
import { arrivals, countingRule, crashes, inOrder, rough } from "./traffic.js";

const HOUR_MS = 3_600_000;

export const hours: Scenario = {
  name: "hours",
  about: "windows of minutes to an hour, ids sent again after minutes, refunds after an hour, on many instances",
  plan(random: Random): Plan {
    const instances = random.whole(16, 64);
    const untilMs = random.between(1, 4) * HOUR_MS;
    const rules = Array.from({ length: random.whole(1, 3) }, (_, i) =>
      countingRule(random, `rule-${i}`, ["1m", "10m", "1h"]),
    );
    const requests = arrivals(random, { count: random.whole(100, 400), untilMs }).flatMap((atMs, i): Step[] => {
      const step = {
        do: "check" as const,
        atMs,
        instances: [random.whole(0, instances - 1), random.whole(0, instances - 1)],
        attributes: { user: random.of(["ann", "bob"]) },
        ...(random.chance(0.5) ? { id: `id-${i}` } : {}),
        ...(random.chance(0.3) ? { refundAfterMs: random.between(0, 3) ** 8 * 1_000 } : {}),
      };
      // Around the minute for which an id is remembered.
      return random.chance(0.2) ? [step, { ...step, atMs: atMs + random.between(50_000, 70_000) }] : [step];
    });
    return {
      instances,
      countedInstances: instances,
      rules,
      faults: rough(random),
      deadlineMs: 100,
      driftPpm: 200,
      localBound: () => Number.POSITIVE_INFINITY,
      steps: inOrder([...requests, ...crashes(random, { instances, count: 5, untilMs })]),
      endMs: untilMs + HOUR_MS,
    };
  },
};
