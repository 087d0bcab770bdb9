/** Places: work that renews, releases, crashes, or loses its lease; clocks that drift. */
import type { Plan, Scenario, Step } from "../plan.js";
import type { Random } from "../random.js";
import { arrivals, crashes, cuts, inOrder, rough } from "./traffic.js";

export const leases: Scenario = {
  name: "leases",
  about: "concurrency leases: renewals, releases, crashes, lost leases, drifting clocks",
  plan(random: Random): Plan {
    const instances = random.whole(2, 8);
    const ttlMs = random.of([300, 1_000, 30_000, 120_000]);
    const untilMs = 10_000 + 5 * ttlMs;
    const requests = arrivals(random, { count: random.whole(30, 200), untilMs }).map(
      (atMs, i): Step => ({
        do: "check",
        atMs,
        instances: [random.whole(0, instances - 1), random.whole(0, instances - 1)],
        attributes: { user: "ann" },
        workMs: random.of([0, 50, ttlMs / 2, ttlMs * 0.999, 4 * ttlMs]) * random.between(0.5, 1),
        ...(random.chance(0.5) ? { returns: 3 } : {}),
        ...(random.chance(0.3) ? { cost: random.whole(1, 3) } : {}),
        ...(random.chance(0.3) ? { id: `id-${i}` } : {}),
      }),
    );
    return {
      instances,
      countedInstances: instances,
      rules: [
        {
          id: "places",
          key: ["user"],
          algorithm: "concurrency",
          limit: random.whole(1, 6),
          ttl: `${ttlMs}ms`,
          onStoreFailure: random.of(["local", "deny"] as const),
        },
      ],
      faults: rough(random),
      deadlineMs: 100,
      driftPpm: random.of([0, 200]),
      localBound: () => Number.POSITIVE_INFINITY,
      steps: inOrder([
        ...requests,
        ...crashes(random, { instances, count: random.whole(0, 6), untilMs }),
        ...cuts(random, { instances, count: random.whole(0, 6), untilMs, longestMs: 3 * ttlMs }),
      ]),
      endMs: untilMs + 5 * ttlMs,
    };
  },
};
