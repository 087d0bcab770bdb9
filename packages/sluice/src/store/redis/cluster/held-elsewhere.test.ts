import { expect, test } from "vitest";
import { type Verdict, verdict } from "../../../algorithms/model.js";
import type { Check } from "../../../check.js";
import type { StoreReply, StoreRequest } from "../../store.js";
import { besideHeld } from "./held-elsewhere.js";
import { type Part, splitByKey } from "./split-by-tag.js";

const held = { units: 5, endInMs: 40, changes: 1 };
const check = (cost: number, more: Partial<Check> = {}, mode = "enforce"): Check =>
  ({
    key: "{a}1",
    cost,
    live: -1,
    plan: { rule: "r", mode, prefetchMs: 20, policy: { limit: 10 } },
    ...more,
  }) as unknown as Check;
const partOf = (...checks: Check[]): Part =>
  splitByKey({
    checks,
    charge: true,
    entryId: "e",
    id: undefined,
    fingerprint: "",
    rulesVersion: 1,
  } as StoreRequest)[0]!;
const charged = (remaining: number): Verdict => ({ ...verdict(true, remaining, 0, 500, undefined), charged: true });
const reply = (...verdicts: Verdict[]): StoreReply => ({ nowMs: 1_000, verdicts, guarantee: "atomic" });

test("a part under a rule with prefetch names the counter whose holders its script does not see", () => {
  expect(partOf(check(1)).heldElsewhere).toBe("{a}1");
  expect(partOf(check(1, { plan: { prefetchMs: 0 } } as Partial<Check>)).heldElsewhere).toBeUndefined();
});

test("a charge that leaves room for the held units stands", () => {
  const found = besideHeld(partOf(check(2)), reply(charged(5)), held);
  expect(found.undos).toEqual([]);
  expect(found.reply.verdicts[0]).toMatchObject({ allowed: true, charged: true, remaining: 0 });
});

test("a charge that leaves one unit too few is undone and refused, until units expire", () => {
  const found = besideHeld(partOf(check(2)), reply(charged(4)), held);
  expect(found.undos).toHaveLength(1);
  expect(found.undos[0]!.charges).toMatchObject([{ check: { cost: 2 }, entryId: "e" }]);
  expect(found.reply.verdicts[0]).toMatchObject({ allowed: false, charged: false, remaining: 1, retryAfterMs: 40 });
});

test("if one check is refused, the others of its key are given back; a shadow rule alone refuses nobody", () => {
  const both = besideHeld(partOf(check(1), check(3)), reply(charged(7), charged(4)), held);
  expect(both.undos[0]!.charges.map(({ check }) => check.cost)).toEqual([1, 3]);
  expect(both.reply.verdicts.map(({ charged }) => charged)).toEqual([false, false]);

  const shadow = besideHeld(partOf(check(1), check(3, {}, "shadow")), reply(charged(7), charged(4)), held);
  expect(shadow.undos[0]!.charges.map(({ check }) => check.cost)).toEqual([3]);
  expect(shadow.reply.verdicts.map(({ allowed }) => allowed)).toEqual([true, false]);
});

test("a charge is never refused, nor is a look at cost 0", () => {
  const found = besideHeld(
    partOf(check(9, { charge: true }), check(0)),
    reply(charged(1), verdict(true, 1, 0, 500, undefined)),
    held,
  );
  expect(found.undos).toEqual([]);
  expect(found.reply.verdicts).toMatchObject([
    { allowed: true, charged: true, remaining: -4 },
    { allowed: true, remaining: -4 },
  ]);
});

test("expired units that nobody has charged yet still count; the wait is at least a millisecond", () => {
  const { reply: found } = besideHeld(partOf(check(1)), reply(charged(0)), { ...held, endInMs: -3 });
  expect(found.verdicts[0]).toMatchObject({ allowed: false, retryAfterMs: 1 });
});
