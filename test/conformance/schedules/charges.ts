/** Charges, for every algorithm that counts: in full, past the limit, up to the most that a counter holds. */
import type { CheckPart, Rule } from "sluice";
import { nameOf, passes, refuses, type Schedule, threeAYear, user } from "./schedule.js";

/** Charges up to the most that a counter holds, and beyond. A charge is bounded by 2^40 or the limit: a high limit needs few; so does a bucket. */
function saturation(rule: Rule): Schedule {
  const isBucket = rule.algorithm === "token-bucket" || rule.algorithm === "gcra";
  const isPacked = "storage" in rule && rule.storage === "packed";
  const limit = isBucket || isPacked ? 3 : 2 ** 50;
  const cost = Math.max(limit, 2 ** 40);
  const beyond = isPacked ? 2 ** 13 + 8 : 16;
  return {
    name: `${nameOf(rule)}: charges that saturate the counter give back nothing that others charged`,
    rules: [{ ...rule, limit } as Rule],
    steps: [
      { check: user, gives: { allowed: true } },
      { charges: 7, of: user, cost, id: "below" },
      { refunds: 7, id: "below" },
      // With such numbers, what is left of buckets and of sliding counters is not exact.
      ...(isBucket ? [{ check: user, cost: limit, gives: { allowed: false } }] : []),
      { check: user, gives: isBucket || rule.algorithm === "sliding-counter" ? { allowed: true } : passes(limit - 2) },
      { charges: beyond, of: user, cost, id: "beyond" },
      // A bucket is refilled meanwhile, and is below its bound again.
      { wait: 2 },
      { refunds: beyond, id: "beyond" },
      { check: user, gives: { allowed: false, remaining: 0, reason: "limit" } },
    ],
  };
}

const part = (cost: number, charge = true): CheckPart => ({ attributes: user, cost, charge });

/** Charges, for every algorithm that counts. */
export const charges: Schedule[] = threeAYear
  .filter(({ algorithm }) => algorithm !== "concurrency")
  .flatMap((rule): Schedule[] => [
    {
      name: `${nameOf(rule)}: a charge is never refused, and the counter refuses until it is given back`,
      rules: [rule],
      steps: [
        { charge: user, cost: 2, gives: passes(1) },
        { charge: user, cost: 2, id: "two", gives: { ...passes(0), debt: 1, checks: [{ allowed: true, debt: 1 }] } },
        { charge: user, cost: 2, id: "two", gives: { ...passes(0), debt: 1 } },
        { check: user, gives: { ...refuses(), debt: 1 } },
        { check: user, cost: 0, gives: { allowed: true, remaining: 0, debt: 1 } },
        { charge: user, cost: 1_000_000_000, id: "far", gives: { ...passes(0), debt: 1_000_000_001 } },
        { refundId: "far", gives: true },
        { refundId: "two", gives: true },
        { check: user, gives: passes(0) },
        { charge: user, cost: Number.MAX_SAFE_INTEGER, gives: passes(0) },
        { charge: user, cost: Number.MAX_SAFE_INTEGER, gives: passes(0) },
        { check: user, gives: refuses() },
        { giveBack: user, cost: Number.MAX_SAFE_INTEGER, gives: true },
        { check: user, gives: passes(2) },
      ],
    },
    {
      name: `${nameOf(rule)}: a charge of any size that is refunded leaves what others charged`,
      rules: [rule],
      steps: [
        { check: user, gives: passes(2) },
        { charge: user, cost: Number.MAX_SAFE_INTEGER, id: "huge", gives: passes(0) },
        { check: user, gives: refuses() },
        { refundId: "huge", gives: true },
        // A bucket of a year may be off by a ten-thousandth of a unit now, so that what is left is not told.
        { check: user, gives: { allowed: true } },
        { check: user, cost: 2, gives: { allowed: false } },
      ],
    },
    saturation(rule),
    {
      name: `${nameOf(rule)}: a charge of 0 is refused exactly where the counter is past its limit`,
      rules: [rule],
      steps: [
        { all: [part(0)], gives: { allowed: true }, parts: [{ allowed: true, remaining: 3 }] },
        { all: [part(2)], gives: { allowed: true }, parts: [{ allowed: true, remaining: 1 }] },
        { all: [part(1)], gives: { allowed: true }, parts: [{ allowed: true, remaining: 0 }] },
        { all: [part(0)], gives: { allowed: true }, parts: [{ allowed: true, remaining: 0 }] },
        { all: [part(2)], gives: refuses(), parts: [{ allowed: false, debt: 2, reason: "limit" }] },
        { all: [part(0)], gives: refuses(), parts: [{ allowed: false, debt: 2, reason: "limit" }] },
        { giveBack: user, cost: 2, gives: true },
        { all: [part(0)], gives: { allowed: true }, parts: [{ allowed: true, remaining: 0 }] },
      ],
    },
    {
      name: `${nameOf(rule)}: beside a charge, a check is refused by its debt and charges nothing`,
      rules: [rule, { ...rule, id: "other", match: { only: "other" } }],
      steps: [
        {
          all: [{ attributes: { ...user, only: "other" }, cost: 1 }, part(4)],
          gives: { allowed: false, violated: ["r", "r"] },
          parts: [{}, { rule: "r", allowed: false, debt: 1 }],
        },
        { check: { ...user, only: "other" }, cost: 0, gives: { checks: [{ debt: 1 }, { remaining: 3 }] } },
        // The check sees the charge that stands behind it on the same counter.
        { reset: "r", attributes: user },
        { wait: 2 },
        { all: [part(2, false), part(2)], gives: { allowed: false }, parts: [{ allowed: false }, { allowed: true }] },
        { check: user, gives: passes(0) },
      ],
    },
    {
      name: `${nameOf(rule)}: in shadow and as a candidate a charge counts, and refuses nothing`,
      rules: [{ ...rule, mode: "shadow", candidate: { limit: 2 } }],
      steps: [
        {
          all: [part(4), { attributes: { none: "1" } }],
          gives: { allowed: true },
          parts: [{ allowed: false, debt: 1 }, {}],
        },
        { charge: user, cost: 1, gives: { allowed: true, checks: [{ debt: 2 }, { mode: "candidate", debt: 3 }] } },
        { check: user, gives: { allowed: true, checks: [{ allowed: false }, { allowed: false }] } },
      ],
    },
    {
      name: `${nameOf(rule)}: a refund gives back nothing where the counter was reset since`,
      rules: [rule],
      steps: [
        { check: user, cost: 2, gives: passes(1) },
        { wait: 2 },
        { reset: "r", attributes: user },
        { check: user, cost: 2, gives: passes(1) },
        { refund: 0, gives: true },
        { check: user, cost: 0, gives: passes(1) },
        { refund: 1, gives: true },
        { check: user, cost: 0, gives: passes(3) },
      ],
    },
  ]);
