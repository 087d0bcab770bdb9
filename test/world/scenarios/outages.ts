/** The store goes away for everybody, under `onStoreFailure: local`: the shares of all instances together keep their bound. */
import type { Plan, Scenario, Step } from "../plan.js";
import type { Random } from "../random.js";
import { arrivals, inOrder, rough } from "./traffic.js";

export const outages: Scenario = {
  name: "outages",
  about:
    "the store away for all instances under `local`, counted by heartbeat or given; starts meanwhile; a store that comes back empty",
  plan(random: Random): Plan {
    const instances = random.whole(1, 12);
    const outageMs = random.of([2_000, 10_000, 30_000]);
    const beginMs = random.between(6_000, 8_000);
    const countedInstances = random.of([undefined, instances]);
    const starts = random.of([0, 0, 1, 2]);
    const untilMs = beginMs + outageMs + 10_000;
    const requests = arrivals(random, { count: random.whole(200, 600), untilMs }).map(
      (atMs): Step => ({
        do: "check",
        atMs,
        instances: [random.whole(0, instances - 1)],
        attributes: { user: random.of(["ann", "bob"]) },
        ...(random.chance(0.2) ? { cost: random.whole(1, 3) } : {}),
      }),
    );
    const restarts = Array.from({ length: starts }).flatMap((): Step[] => {
      const instance = random.whole(0, instances - 1);
      const atMs = random.between(beginMs + 10, beginMs + outageMs);
      return [
        { do: "crash", atMs, instance },
        { do: "start", atMs: atMs + 5, instance },
      ];
    });
    return {
      instances,
      countedInstances,
      rules: [
        {
          id: "user",
          key: ["user"],
          algorithm: "rolling-window",
          limit: random.whole(1, 40),
          window: random.of(["1s", "5s"]),
        },
        { id: "all", key: [], algorithm: "token-bucket", limit: 200, window: "1s", onStoreFailure: "local" },
      ],
      faults: { ...rough(random), loss: 0, stragglers: 0 },
      deadlineMs: 100,
      driftPpm: 200,
      // An instance that starts meanwhile knows of no other, unless it was told.
      localBound: (limit) =>
        Math.max(limit, instances) + starts * (countedInstances === undefined ? limit : Math.max(1, limit / instances)),
      steps: inOrder([
        ...requests,
        ...restarts,
        { do: "store-cut", atMs: beginMs },
        ...(random.chance(0.3) ? [{ do: "store-wipe", atMs: beginMs + outageMs - 1 } as const] : []),
        { do: "store-heal", atMs: beginMs + outageMs },
      ]),
      endMs: untilMs + 1_000,
    };
  },
};
