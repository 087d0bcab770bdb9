import { expect, test } from "vitest";
import { compileRuleBook } from "../rules/rule-book.js";
import type { Store, StoreReply, StoreRequest } from "../store/store.js";
import { isFromHand, Prefetch } from "./prefetch.js";

const book = compileRuleBook(
  [{ id: "r", key: [], algorithm: "rolling-window", limit: 1_000, window: "10s", prefetch: "10s" }],
  1,
);
const request: StoreRequest = {
  checks: book.checks({}, undefined),
  charge: true,
  entryId: "e",
  id: undefined,
  fingerprint: "",
  rulesVersion: 1,
};
const passed = { allowed: true, remaining: 900, retryAfterMs: 0, resetAfterMs: 0, reason: undefined, charged: true };
const answer: StoreReply = { nowMs: 1_000, verdicts: [passed], guarantee: "atomic" };

test("a use whose settlement got no answer is not given back into the hand: the store may have charged it", async () => {
  let isLost = false;
  const decide = async ({ fetches }: StoreRequest): Promise<StoreReply> => {
    if (isLost) throw new Error("no answer");
    return fetches === undefined ? answer : { ...answer, grants: [{ units: 4, kept: 0, lifeMs: 10_000 }] };
  };
  const prefetch = new Prefetch({ decide } as unknown as Store);
  // Until the key is known to be busy, and has units in hand.
  let used = await prefetch.decide(request);
  while (!isFromHand(used)) used = await prefetch.decide(request);
  isLost = true;
  await prefetch.close();
  expect(await prefetch.refund(used, request.checks)).toBe(false);
  expect(prefetch.stats().units).toBe(0);
});
