import { expect, test } from "vitest";
import { KeptSettlements } from "./kept-settlements.js";

const settlement = (id: string, isOwn: boolean) => ({
  id,
  isOwn,
  reserved: { ttlMs: 60_000, counters: [] },
  amounts: new Map<string, number>(),
  endsAtMonotonicMs: performance.now() + 60_000,
});

/** A store that never answers. */
const away = (): KeptSettlements => new KeptSettlements(() => Promise.reject(new Error("away")));

test("long ids that nobody can vouch for are kept up to four megabytes, and make room for reservations of this instance", async () => {
  const kept = away();
  const long = "f".repeat(16_000);
  for (let i = 0; i < 1_000; i++) kept.keep(settlement(`${long}${1_000 + i}`, false));
  const most = Math.floor((4 * 2 ** 20) / (long.length + 4));
  expect([kept.count, kept.dropped]).toEqual([most, 1_000 - most]);
  kept.keep(settlement("o".repeat(16_000), true));
  kept.keep(settlement("strange".repeat(2_000), false));
  expect([kept.count, kept.dropped]).toEqual([most, 1_000 - most + 2]);
  await kept.close();
});

test("ten thousand are kept; the same id again takes no second place", async () => {
  const kept = away();
  for (let i = 0; i < 10_000; i++) kept.keep(settlement(`own-${i}`, true));
  kept.keep(settlement("own-7", true));
  expect([kept.count, kept.dropped]).toEqual([10_000, 0]);
  kept.keep(settlement("own-10000", true));
  expect([kept.count, kept.dropped]).toEqual([10_000, 1]);
  await kept.close();
});

test("those that go on failing do not hold up the others", async () => {
  const sent: string[] = [];
  const kept = new KeptSettlements(async ({ id }) => {
    if (id.startsWith("down")) throw new Error("a node that is down");
    sent.push(id);
  });
  for (let i = 0; i < 250; i++) kept.keep(settlement(`down-${i}`, true));
  for (let i = 0; i < 10; i++) kept.keep(settlement(`back-${i}`, true));
  await expect.poll(() => sent.length, { timeout: 30_000 }).toBe(10);
  expect(kept.count).toBe(250);
  await kept.close();
});
