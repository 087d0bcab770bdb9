import { expect, test } from "vitest";
import type { ReservationState, SettleReply } from "../store/reserved.js";
import { KeptSettlements } from "./kept-settlements.js";

const settlement = (id: string, isOwn: boolean) => ({
  id,
  isOwn,
  reserved: { ttlMs: 60_000, counters: [] },
  amounts: new Map<string, number>(),
  name: `of${id}`,
  endsAtMonotonicMs: performance.now() + 60_000,
});

/** A store that never answers. */
const away = (): KeptSettlements =>
  new KeptSettlements({ send: () => Promise.reject(new Error("away")), onAnswered: () => {} });

const answer = (state: ReservationState): SettleReply => ({
  counters: [{ state, held: 1, charged: 1 }],
  isNew: false,
  isOwn: false,
});

test("long ids that cannot be verified are kept up to four megabytes, and make room for reservations of this instance", async () => {
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

test("ten thousand are kept; a repeated id takes no second place", async () => {
  const kept = away();
  for (let i = 0; i < 10_000; i++) kept.keep(settlement(`own-${i}`, true));
  kept.keep(settlement("own-7", true));
  expect([kept.count, kept.dropped]).toEqual([10_000, 0]);
  kept.keep(settlement("own-10000", true));
  expect([kept.count, kept.dropped]).toEqual([10_000, 1]);
  await kept.close();
});

test("those that keep failing do not hold up the others", async () => {
  const sent: string[] = [];
  const kept = new KeptSettlements({
    send: async ({ id }) => {
      if (id.startsWith("down")) throw new Error("a node that is down");
      return answer("settled");
    },
    onAnswered: ({ id }) => sent.push(id),
  });
  for (let i = 0; i < 250; i++) kept.keep(settlement(`down-${i}`, true));
  for (let i = 0; i < 10; i++) kept.keep(settlement(`back-${i}`, true));
  await expect.poll(() => sent.length, { timeout: 30_000 }).toBe(10);
  expect(kept.count).toBe(250);
  await kept.close();
});

test("one that was sent too late counts as dropped, whatever kept it", async () => {
  const states: ReservationState[] = ["settled", "expired", "unknown"];
  const answered: string[] = [];
  const kept = new KeptSettlements({
    send: async ({ id }) => answer(states[Number(id)]!),
    onAnswered: ({ id }) => answered.push(id),
  });
  for (const id of ["0", "1", "2"]) kept.keep(settlement(id, true));
  await expect.poll(() => kept.count).toBe(0);
  expect([answered, kept.dropped]).toEqual([["0", "1", "2"], 2]);
  for (const id of ["0", "1"]) kept.keep(settlement(id, true));
  await kept.close();
  expect([answered.length, kept.dropped]).toEqual([5, 3]);
});

test("an answer that another call got first is not reported twice, and other costs are sent in their turn", async () => {
  const calls: { id: string; answer: (reply: SettleReply) => void }[] = [];
  const answered: string[] = [];
  const kept = new KeptSettlements({
    send: ({ id }) => new Promise((resolve) => calls.push({ id, answer: resolve })),
    onAnswered: ({ id }) => answered.push(id),
  });
  kept.keep(settlement("taken", true));
  kept.keep(settlement("again", true));
  await expect.poll(() => calls.length).toBe(2);
  expect([kept.take({ id: "taken", name: "another" }), kept.nameOf("taken")]).toEqual([false, "oftaken"]);
  expect([kept.take({ id: "taken", name: "oftaken" }), kept.take({ id: "taken", name: "oftaken" })]).toEqual([
    true,
    false,
  ]);
  kept.keep(settlement("again", true));
  for (const call of calls) call.answer(answer("settled"));
  await expect.poll(() => calls.length).toBe(3);
  expect([calls[2]!.id, answered]).toEqual(["again", []]);
  calls[2]!.answer(answer("settled"));
  await expect.poll(() => answered).toEqual(["again"]);
  await kept.close();
});
