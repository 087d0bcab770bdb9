import { expect, test } from "vitest";
import { models } from "../../algorithms/models.js";
import type { Decision } from "../../limiter/decision.js";
import { createLimiter } from "../../limiter/limiter.js";
import type { Rule } from "../../rules/rule.js";
import { compileRuleBook } from "../../rules/rule-book.js";
import { virtualClock } from "../../testing.js";
import { CounterMap } from "./counter-map.js";
import { MemoryTurns } from "./memory-turns.js";

const book = compileRuleBook(
  [{ id: "r", key: [], algorithm: "rolling-window", limit: 1, window: "1s", maxWait: "1m" }],
  1,
);
const NOW_MS = 1_000_000;

test("vacant turns are stored beside their counter, count as memory, and go with the last of them", () => {
  const states = new CounterMap(1e6);
  const turns = new MemoryTurns(states);
  const [check] = book.checks({}, 1);
  const { policy } = check!.plan;
  const model = models[policy.stored];
  const state = model.fresh();
  for (const nowMs of [NOW_MS, NOW_MS + 1_000]) {
    const found = model.look(state, policy, 1, nowMs);
    model.charge(state, policy, { cost: 1, nowMs, requestId: "a" }, found);
  }
  expect(turns.giveBack(check!, { atMs: NOW_MS + 1_000, bookedMs: NOW_MS, name: "a" }, state, NOW_MS)).toBe(true);
  expect(states.count).toBe(1);
  expect(states.bytes).toBeGreaterThan(0);
  const found = model.look(state, policy, 1, NOW_MS);
  turns.find(check!, 0, found, state, NOW_MS);
  expect(found).toMatchObject({ allowed: true, delayMs: 1_000 });
  expect(turns.take(check!, 0, NOW_MS)).toBe(true);
  expect([states.count, states.bytes]).toEqual([0, 0]);
});

test("a charge beyond the last turn was lost, and leaves nothing vacant", () => {
  const states = new CounterMap(1e6);
  const turns = new MemoryTurns(states);
  const [check] = book.checks({}, 1);
  const state = models[check!.plan.policy.stored].fresh();
  expect(turns.giveBack(check!, { atMs: NOW_MS + 1_000, bookedMs: NOW_MS, name: "a" }, state, NOW_MS)).toBe(true);
  expect(states.count).toBe(0);
});

test("of more turns that have passed than are settled at once, none is handed out", async () => {
  const clock = virtualClock();
  const limiter = createLimiter({
    clock,
    rules: [{ id: "r", key: [], algorithm: "rolling-window", limit: 1, window: "1s", maxWait: "1h" }],
  });
  const booked: Decision[] = [];
  for (let i = 0; i < 600; i++) booked.push(await limiter.check({}));
  for (const decision of booked.slice(1)) await limiter.refund(decision);
  clock.advance(300_500);
  const delays: number[] = [];
  for (let i = 0; i < 6; i++) delays.push((await limiter.check({})).delayMs);
  expect(delays).toEqual([500, 1_500, 2_500, 3_500, 4_500, 5_500]);
  await limiter.close();
});

test.each(["rolling-window", "fixed-window", "gcra", "token-bucket"] as const)(
  "%s: a turn from before a reset gives nothing back",
  async (algorithm) => {
    const clock = virtualClock();
    const rule: Rule = { id: "r", key: [], algorithm, limit: 1, window: "1s", maxWait: "1h" };
    const limiter = createLimiter({ clock, rules: [rule] });
    await limiter.check({});
    const [old, older] = [await limiter.check({}), await limiter.check({})];
    clock.advance(10);
    await limiter.reset("r", {});
    clock.advance(10);
    const delays: number[] = [];
    for (let i = 0; i < 3; i++) delays.push((await limiter.check({})).delayMs);
    await limiter.refund(old);
    delays.push((await limiter.check({})).delayMs);
    expect(delays.slice(1).map((delayMs, i) => delayMs - delays[i]!)).toEqual([
      algorithm === "fixed-window" ? 980 : 1_000,
      1_000,
      1_000,
    ]);
    clock.advance(2_500);
    await limiter.refund(older);
    const next = await limiter.check({});
    expect(next.delayMs).toBe(delays.at(-1)! - 1_500);
    await limiter.close();
  },
);
