import { expect, test } from "vitest";
import type { Check } from "../check.js";
import { compileRuleBook } from "../rules/rule-book.js";
import { virtualClock } from "../testing.js";
import { MemoryStore } from "./memory-store.js";

const book = compileRuleBook([{ id: "r", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1s" }], 1);
const request = (user: string, id?: string) => ({
  checks: book.checks({ user }, undefined) as Check[],
  charge: true,
  entryId: "e",
  id,
  rulesVersion: 1,
});

test("a million one-off keys do not grow the store beyond what one window holds", () => {
  const clock = virtualClock();
  const store = new MemoryStore({ clock });
  let most = 0;
  for (let i = 0; i < 1_000_000; i++) {
    // A thousand keys a millisecond-step of 10: about 100 000 are alive at any time.
    if (i % 1_000 === 0) clock.advance(10);
    store.decide(request(`one-off-${i}`));
    most = Math.max(most, store.size);
  }
  store.close();
  console.log(`memory store: a million one-off keys, at most ${most} held (100 000 alive at a time)`);
  expect(most).toBeLessThan(220_000);
});

test("at its bound the store takes new keys, and those nearest to their end give way", () => {
  const clock = virtualClock();
  const store = new MemoryStore({ clock, maxKeys: 1_000 });
  for (let i = 0; i < 100_000; i++) store.decide(request(`key-${i}`));
  expect(store.size).toBeLessThanOrEqual(1_000);
  expect(store.decide(request("key-99999")).verdicts[0]).toMatchObject({ allowed: true, remaining: 0 });
  store.close();
});

test("remembered request ids are bounded too", () => {
  const clock = virtualClock();
  const store = new MemoryStore({ clock, maxKeys: 100 });
  for (let i = 0; i < 1_000; i++) store.decide(request("ann", `id-${i}`));
  expect(store.recall("id-999")).toBeDefined();
  expect(store.recall("id-0")).toBeUndefined();
  clock.advance("1m");
  expect(store.recall("id-999")).toBeUndefined();
  store.close();
});

test("without traffic, one timer for the whole store sweeps what has ended", async () => {
  const store = new MemoryStore();
  const brief = compileRuleBook([{ id: "r", key: ["user"], algorithm: "fixed-window", limit: 2, window: "20ms" }], 1);
  for (let i = 0; i < 500; i++) store.decide({ ...request("x"), checks: brief.checks({ user: `u${i}` }, undefined) });
  expect(store.size).toBeGreaterThan(0);
  await expect.poll(() => store.size, { timeout: 5_000 }).toBe(0);
  store.close();
});
