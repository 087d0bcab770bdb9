/** Instances lose the store one after another under `local`: those that are left do not count them, so that shares grow, within their bound. */
import type { Plan, Scenario, Step } from "../plan.js";
import type { Random } from "../random.js";
import { arrivals, inOrder, rough } from "./traffic.js";

/** Longer than it takes those that are left to believe that one has gone: its silence, and as long again. */
const APART_MS = 9_000;

export const oneByOne: Scenario = {
  name: "one-by-one",
  about: "instances cut off from the store one after another under `local`, in one window of all of them",
  plan(random: Random): Plan {
    const instances = random.whole(2, 6);
    const beginMs = random.between(6_000, 8_000);
    const apartMs = random.of([200, 2_000, APART_MS]);
    const lastMs = beginMs + instances * apartMs;
    const untilMs = lastMs + 5_000;
    // Each asks for more than its share once it is cut off.
    const requests = arrivals(random, { count: random.whole(300, 700), untilMs }).map(
      (atMs): Step => ({
        do: "check",
        atMs,
        instances: [random.whole(0, instances - 1)],
        attributes: { user: "ann" },
        ...(random.chance(0.1) ? { cost: 2 } : {}),
      }),
    );
    const cuts = Array.from({ length: instances }, (_, instance): Step[] => [
      { do: "cut", atMs: beginMs + instance * apartMs, instance },
      { do: "heal", atMs: untilMs + 1_000, instance },
    ]).flat();
    return {
      instances,
      countedInstances: undefined,
      rules: [{ id: "user", key: ["user"], algorithm: "rolling-window", limit: random.whole(1, 60), window: "10m" }],
      faults: { ...rough(random), loss: 0, stragglers: 0 },
      deadlineMs: 100,
      driftPpm: 200,
      // docs/reliability.md: the first has its share among all, the last is alone.
      localBound: (limit) => {
        let bound = 0;
        for (let left = 1; left <= instances; left++) bound += Math.max(1, limit / left);
        return bound;
      },
      steps: inOrder([...requests, ...cuts]),
      endMs: untilMs + 5_000,
    };
  },
};
