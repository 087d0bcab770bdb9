/** Costs that are known afterwards: holds, extensions, settlements and cancellations from any instance, sent again, lost, late, never. */
import type { Attributes, Rule } from "../../../packages/sluice/src/rules/rule.js";
import type { CheckStep, Plan, Scenario, Step, Work } from "../plan.js";
import type { Random } from "../random.js";
import { arrivals, countingRule, crashes, cuts, inOrder, rough } from "./traffic.js";

const COSTS = ["tokens", "bytes"] as const;

export const reservations: Scenario = {
  name: "reservations",
  about: "costs known afterwards: holds, extensions, settlements from any instance, sent again, lost, late or never",
  plan(random: Random): Plan {
    const instances = random.whole(1, 5);
    const untilMs = random.between(2_000, 20_000);
    const isSafe = random.chance(0.5);
    const ttlMs = isSafe ? 120_000 : random.of([1_000, 3_000, 8_000]);
    const rules = Array.from({ length: random.of([1, 1, 2, 3]) }, (_, i) => reservingRule(random, i, ttlMs));
    if (random.chance(0.3)) rules.push({ ...countingRule(random, "plain"), onStoreFailure: "deny" });
    const users = random.of([["ann"], ["ann", "bob"]]);
    const all = Array.from({ length: instances }, (_, i) => i);
    const steps = arrivals(random, { count: random.whole(20, 150), untilMs }).map((atMs, i): CheckStep => {
      const from = random.whole(0, instances - 1);
      return {
        do: "check",
        atMs,
        instances: [...all.slice(from), ...all.slice(0, from)],
        attributes: { user: random.of(users), ...(random.chance(0.5) ? { most: random.whole(1, 60) } : {}) },
        ...(random.chance(0.2) ? { id: `id-${i}` } : {}),
        ...(random.chance(0.85) ? { work: workOf(random, all, ttlMs) } : {}),
      };
    });
    const trouble: Step[] = isSafe
      ? cuts(random, { instances, count: random.whole(0, 4), untilMs })
      : [
          ...crashes(random, { instances, count: random.whole(0, 4), untilMs }),
          ...cuts(random, { instances, count: random.whole(0, 4), untilMs }),
          ...(random.chance(0.1) ? [{ do: "store-wipe", atMs: random.between(0, untilMs) } as const] : []),
        ];
    return {
      instances,
      countedInstances: instances,
      rules,
      faults: rough(random),
      deadlineMs: random.of([50, 200, 1_000]),
      rememberRefusals: random.chance(0.5),
      driftPpm: random.of([0, 1_000]),
      localBound: () => Number.POSITIVE_INFINITY,
      sumsHours: true,
      // What was kept while the store was away is sent within seconds of its return.
      settlesAll: isSafe,
      steps: inOrder([...steps, ...trouble]),
      endMs: untilMs + 40_000,
    };
  },
};

function reservingRule(random: Random, i: number, ttlMs: number): Rule {
  const numbers = random.chance(0.5)
    ? lastingRule(random, `rule-${i}`)
    : { ...countingRule(random, `rule-${i}`), limit: random.whole(1, 200) };
  const { minInterval: _, burst: __, ...rule } = numbers as Rule & { minInterval?: string; burst?: number };
  return {
    ...rule,
    onStoreFailure: "deny",
    cost: { attribute: random.of(COSTS) },
    estimate: {
      default: random.whole(1, 30),
      ttl: `${ttlMs}ms`,
      quantile: 0.9,
      overrun: random.of(["finish", "finish", "stop"] as const),
      ...(random.chance(0.5) ? { attribute: "most" } : {}),
    },
  } as Rule;
}

/** Nothing leaves its window while the world lasts: what it counts is what was settled and is held. */
function lastingRule(random: Random, id: string): Rule {
  const base = { id, key: ["user"], limit: random.whole(50, 2_000), window: "1h" } as const;
  return random.chance(0.5)
    ? { ...base, algorithm: "fixed-window" }
    : { ...base, algorithm: "rolling-window", storage: random.of(["sorted-set", "packed"] as const) };
}

function workOf(random: Random, all: readonly number[], ttlMs: number): Work {
  const from = random.whole(0, all.length - 1);
  // Some take longer than their term.
  const afterMs = random.between(0, Math.min(ttlMs * 1.2, 10_000));
  return {
    afterMs,
    instances: [...all.slice(from), ...all.slice(0, from)],
    costs: costsOf(random),
    ...(random.chance(0.1) ? { isCancelled: true } : {}),
    ...(random.chance(0.3) ? { extension: { afterMs: afterMs * random.between(0, 1.1), costs: costsOf(random) } } : {}),
    ...(random.chance(0.3) ? { again: { afterMs: afterMs + random.between(0, 2_000), costs: costsOf(random) } } : {}),
  };
}

/** Both, so that whatever a reservation waits for is among them; at times far beyond what is held. */
function costsOf(random: Random): Attributes {
  const cost = (): number => (random.chance(0.1) ? random.whole(100, 1_000) : random.whole(0, 50));
  return Object.fromEntries(COSTS.map((name) => [name, cost()]));
}
