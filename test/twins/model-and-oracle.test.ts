/**
 * The models against the naive oracle, on virtual time: the same verdicts, and waits that are neither too short nor too long.
 * Compared by node:assert: with vitest's `expect`, a million comparisons take twice as long as everything else here.
 */
import { equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import type { State } from "../../packages/sluice/src/algorithms/model.js";
import { models } from "../../packages/sluice/src/algorithms/models.js";
import { compilePolicy } from "../../packages/sluice/src/rules/compile-policy.js";
import { numbers } from "./arbitrary-rules.js";
import { Oracle } from "./oracle.js";

const exact = numbers.filter(({ algorithm }) => algorithm !== "sliding-counter");
const arrivals = fc.array(
  fc.record({
    waitMs: fc.integer({ min: 0, max: 15 }),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 9 })),
  }),
  { minLength: 1, maxLength: 60, size: "max" },
);
const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
// Not a multiple of any window: alignment to the epoch is part of what is tested.
const START_MS = 1_795_000_000_123;

test("the exact algorithms give the oracle's verdicts and remaining counts", () => {
  console.log(`model-and-oracle: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  fc.assert(
    fc.property(exact, arrivals, (chosen, schedule) => {
      const policy = compilePolicy(chosen);
      const model = models[policy.stored];
      const oracle = new Oracle(policy);
      const state: State = model.fresh();
      let nowMs = START_MS;
      for (const [i, { waitMs, cost }] of schedule.entries()) {
        nowMs += waitMs;
        const verdict = model.look(state, policy, cost, nowMs);
        equal(verdict.allowed, oracle.allows(cost, nowMs));
        equal(verdict.remaining, oracle.remaining(nowMs));
        if (!verdict.allowed || cost === 0) continue;
        model.charge(state, policy, { cost, nowMs, requestId: `e${i}` }, verdict);
        oracle.admit(cost, nowMs);
        equal(verdict.remaining, oracle.remaining(nowMs));
      }
    }),
    { seed, numRuns: 3_000 },
  );
});

test("a refused request passes exactly after the wait it was told, and not a millisecond before", () => {
  fc.assert(
    fc.property(numbers, arrivals, (chosen, schedule) => {
      const policy = compilePolicy(chosen);
      const model = models[policy.stored];
      const state: State = model.fresh();
      let nowMs = START_MS;
      for (const [i, { waitMs, cost }] of schedule.entries()) {
        nowMs += waitMs;
        const verdict = model.look(state, policy, cost, nowMs);
        if (verdict.allowed) {
          equal(verdict.retryAfterMs, 0);
          if (cost > 0) model.charge(state, policy, { cost, nowMs, requestId: `e${i}` }, verdict);
        } else if (verdict.reason !== "cost-exceeds-limit") {
          ok(verdict.retryAfterMs > 0);
          equal(model.look(state, policy, cost, nowMs + verdict.retryAfterMs).allowed, true);
          equal(model.look(state, policy, cost, nowMs + verdict.retryAfterMs - 1).allowed, false);
        }
      }
    }),
    { seed, numRuns: 3_000 },
  );
});

test("after the reset that it tells, a counter is as good as new, and not a millisecond before", () => {
  fc.assert(
    fc.property(numbers, arrivals, (chosen, schedule) => {
      const policy = compilePolicy(chosen);
      const model = models[policy.stored];
      const state: State = model.fresh();
      let nowMs = START_MS;
      for (const [i, { waitMs, cost }] of schedule.entries()) {
        nowMs += waitMs;
        const verdict = model.look(state, policy, cost, nowMs);
        if (!verdict.allowed || cost === 0) continue;
        model.charge(state, policy, { cost, nowMs, requestId: `e${i}` }, verdict);
        ok(verdict.resetAfterMs > 0);
        const fresh = model.look(model.fresh(), policy, 0, nowMs).remaining;
        const after = model.look(state, policy, 0, nowMs + verdict.resetAfterMs);
        equal(after.remaining, fresh);
        equal(after.resetAfterMs, 0);
        equal(model.look(state, policy, 0, nowMs + verdict.resetAfterMs - 1).resetAfterMs, 1);
        // The key may expire then, and no sooner.
        equal(state.endsAtMs, nowMs + verdict.resetAfterMs);
      }
    }),
    { seed, numRuns: 2_000 },
  );
});
