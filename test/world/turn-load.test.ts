/** The bars of `maxWait` under three instances, in the world: order kept, spacing exact at the store, abandoned turns reused. */
import { expect, test } from "vitest";
import type { Rule } from "../../packages/sluice/src/rules/rule.js";
import type { NetworkFaults } from "./network.js";
import { runTurnLoad } from "./turn-load.js";

const calm: NetworkFaults = { delayMs: [0.5, 4], loss: 0, doubling: 0, stragglers: 0 };
const rough: NetworkFaults = { delayMs: [0.2, 80], loss: 0, doubling: 0, stragglers: 0.02 };
const INTERVAL_MS = 50;
const paced = { key: [], maxWait: "30s", onStoreFailure: "deny" } as const;
const rules: readonly Rule[] = [
  { ...paced, id: "gcra", algorithm: "gcra", limit: 20, window: "1s", burst: 1 },
  { ...paced, id: "bucket", algorithm: "token-bucket", limit: 1, window: "50ms" },
  { ...paced, id: "packed", algorithm: "rolling-window", limit: 1, window: "50ms", storage: "packed" },
  { ...paced, id: "sorted", algorithm: "rolling-window", limit: 1, window: "50ms", storage: "sorted-set" },
];

test.each(rules.flatMap((rule) => [1, 2].map((seed) => [rule.id, seed, rule] as const)))(
  "%s, seed %i: three instances give turns in order and exactly spaced, and take over those that were left",
  async (_id, seed, rule) => {
    for (const faults of [calm, rough]) {
      const load = { seed, instances: 3, rule, intervalMs: INTERVAL_MS, seconds: 60, leaving: 0.3, faults };
      const found = await runTurnLoad(load);
      expect(found.violations).toEqual([]);
      expect(found.granted).toBeGreaterThan(1_000);
      // Most of those that leave do so early enough for another to come.
      expect(found.reused).toBeGreaterThan(found.abandoned / 2);
      expect(found.served).toBeLessThanOrEqual(found.granted - found.abandoned);
    }
  },
);
