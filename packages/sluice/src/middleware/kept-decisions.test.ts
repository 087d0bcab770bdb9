import { expect, test } from "vitest";
import type { Decision } from "../limiter/decision.js";
import { createLimiter } from "../limiter/limiter.js";
import { KeptDecisions } from "./kept-decisions.js";

const limiter = createLimiter({ rules: [] });
const decided = (): Promise<Decision> => limiter.check({});

test("a key whose decisions were all taken back is forgotten", async () => {
  const kept = new KeptDecisions();
  for (let i = 0; i < 100; i++) {
    const [one, other] = [await decided(), await decided()];
    kept.keep(`key-${i}`, one);
    kept.keep(`key-${i}`, other);
    expect([kept.take(`key-${i}`, one), kept.take(`key-${i}`, one)]).toEqual([true, false]);
    expect([kept.takeLatest(`key-${i}`), kept.takeLatest(`key-${i}`)]).toEqual([other, undefined]);
  }
  expect(kept.keys).toBe(0);
});

test("of too many decisions, those of the key that was idle longest are forgotten, however many were taken back before", async () => {
  const kept = new KeptDecisions();
  const decision = await decided();
  for (let i = 0; i < 1_000; i++) {
    kept.keep(`gone-${i}`, decision);
    kept.takeLatest(`gone-${i}`);
  }
  for (let i = 0; i < 10_002; i++) kept.keep(`key-${i}`, decision);
  expect([kept.keys, kept.takeLatest("key-1"), kept.takeLatest("key-2")]).toEqual([10_000, undefined, decision]);
  kept.forget("key-3");
  expect([kept.keys, kept.takeLatest("key-3")]).toEqual([9_998, undefined]);
});
