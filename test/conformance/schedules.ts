/**
 * What every store must answer, as data: rules, then steps with what each must give. Steps that need time to pass wait for it
 * in the store's own time; no expectation depends on how fast a store is.
 */
import type { Attributes, CheckPart, Rule } from "sluice";
import { expect } from "vitest";

export type Step =
  | { check: Attributes; cost?: number; id?: string; gives: Record<string, unknown> }
  | { charge: Attributes; cost?: number; id?: string; gives: Record<string, unknown> }
  /** Parts that are decided as one; `gives` is of the decision, `parts` of each part's first check. */
  | { all: readonly CheckPart[]; gives: Record<string, unknown>; parts: readonly Record<string, unknown>[] }
  /** Rejects with this code. */
  | { check: Attributes; cost?: number; id: string; rejects: string }
  | { peek: Attributes; cost?: number; id?: string; gives: Record<string, unknown> }
  /** As many at once, each with an id of its own: `id`, then its number. */
  | { charges: number; of: Attributes; cost: number; id: string }
  /** The first so many of those ids, at once. */
  | { refunds: number; id: string }
  | { wait: number }
  /** The n-th check of this schedule, from 0. */
  | { refund: number; gives: boolean }
  | { refundId: string; gives: boolean }
  | { giveBack: Attributes; cost?: number; gives: boolean }
  | { release: number; gives: boolean }
  | { renew: number; gives: boolean }
  /** The reservation of the n-th check. */
  | { settle: number; costs: Attributes; gives: Record<string, unknown> }
  | { extend: number; costs: Attributes; gives: Record<string, unknown> }
  | { cancel: number; gives: Record<string, unknown> }
  | { reset: string; attributes: Attributes }
  | { setRules: readonly Rule[] };

export interface Schedule {
  readonly name: string;
  readonly rules: readonly Rule[];
  readonly steps: readonly Step[];
}

const user = { user: "ann" };
const passes = (remaining: number): Record<string, unknown> => ({
  allowed: true,
  remaining,
  retryAfterMs: 0,
  violated: [],
});
const refuses = (reason = "limit"): Record<string, unknown> => ({ allowed: false, remaining: 0, reason });
const times = (n: number, step: Step): Step[] => Array.from({ length: n }, () => step);

/** The rate algorithms at three a year: nothing comes back while a test runs. */
const threeAYear: Rule[] = [
  { id: "r", key: ["user"], algorithm: "token-bucket", limit: 3, window: "365d" },
  { id: "r", key: ["user"], algorithm: "gcra", limit: 3, window: "365d" },
  { id: "r", key: ["user"], algorithm: "fixed-window", limit: 3, window: "365d" },
  { id: "r", key: ["user"], algorithm: "sliding-counter", limit: 3, window: "365d" },
  { id: "r", key: ["user"], algorithm: "rolling-window", limit: 3, window: "365d", storage: "sorted-set" },
  { id: "r", key: ["user"], algorithm: "rolling-window", limit: 3, window: "365d", storage: "packed" },
  { id: "r", key: ["user"], algorithm: "concurrency", limit: 3, ttl: "365d" },
];

const nameOf = (rule: Rule): string =>
  "storage" in rule && rule.storage ? `${rule.algorithm} (${rule.storage})` : rule.algorithm;
const reasonOf = (rule: Rule): string => (rule.algorithm === "concurrency" ? "concurrency" : "limit");

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
const charges: Schedule[] = threeAYear
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

const perAlgorithm: Schedule[] = threeAYear.flatMap((rule): Schedule[] => [
  {
    name: `${nameOf(rule)}: three pass, the fourth is refused, another key is untouched`,
    rules: [rule],
    steps: [
      { check: user, gives: { ...passes(2), rule: "r", limit: 3 } },
      { check: user, gives: passes(1) },
      { check: user, gives: passes(0) },
      { check: user, gives: { ...refuses(reasonOf(rule)), violated: ["r"], rule: "r" } },
      { check: { user: "bob" }, gives: passes(2) },
      { check: {}, gives: { allowed: true, checks: [], violated: [] } },
    ],
  },
  {
    name: `${nameOf(rule)}: costs are weighed; what does not fit charges nothing; cost 0 only looks`,
    rules: [rule],
    steps: [
      { check: user, cost: 2, gives: passes(1) },
      { check: user, cost: 2, gives: { allowed: false, remaining: 1, reason: reasonOf(rule) } },
      { check: user, cost: 0, gives: passes(1) },
      { peek: user, gives: passes(1) },
      { check: user, cost: 1, gives: passes(0) },
      { check: user, cost: 0, gives: { allowed: true, remaining: 0 } },
      { peek: user, gives: refuses(reasonOf(rule)) },
    ],
  },
  {
    name: `${nameOf(rule)}: a cost above the limit is refused as such, with no wait that would help`,
    rules: [rule],
    steps: [
      {
        check: user,
        cost: 4,
        gives: { allowed: false, remaining: 3, reason: "cost-exceeds-limit", retryAfterMs: 2 ** 31 - 1 },
      },
      { check: user, cost: 3, gives: passes(0) },
    ],
  },
  {
    name: `${nameOf(rule)}: a repeated request id gives the same decision and charges once; its refund gives back once`,
    rules: [rule],
    steps: [
      { check: user, cost: 2, id: "one", gives: passes(1) },
      { check: user, cost: 2, id: "one", gives: passes(1) },
      { peek: user, cost: 0, gives: passes(1) },
      { refundId: "one", gives: true },
      { refundId: "one", gives: false },
      { peek: user, cost: 0, gives: passes(3) },
      { refundId: "never seen", gives: false },
      { check: user, cost: 3, id: "two", gives: passes(0) },
      { check: user, id: "three", gives: refuses(reasonOf(rule)) },
      { check: user, id: "three", gives: refuses(reasonOf(rule)) },
    ],
  },
  {
    name: `${nameOf(rule)}: an id that was refunded is decided anew, and counted`,
    rules: [rule],
    steps: [
      ...Array.from({ length: 5 }, (_, i): Step[] => [
        { check: user, id: `early-${i}`, gives: passes(2) },
        { refundId: `early-${i}`, gives: true },
      ]).flat(),
      { check: user, id: "early-0", gives: passes(2) },
      { check: user, id: "early-1", gives: passes(1) },
      { check: user, id: "early-1", gives: passes(1) },
      { check: user, id: "early-2", gives: passes(0) },
      { check: user, id: "early-3", gives: refuses(reasonOf(rule)) },
    ],
  },
  {
    name: `${nameOf(rule)}: a refund names one charge: another of the same id is not given back by it`,
    rules: [rule],
    steps: [
      { check: user, id: "one", gives: passes(2) },
      { check: user, id: "one", gives: passes(2) },
      { refund: 0, gives: true },
      { check: user, id: "one", gives: passes(2) },
      // The second answer was to the first charge.
      { refund: 1, gives: false },
      { refund: 0, gives: false },
      { peek: user, cost: 0, gives: passes(2) },
      { refund: 2, gives: true },
      { refundId: "one", gives: false },
      { peek: user, cost: 0, gives: passes(3) },
    ],
  },
  {
    name: `${nameOf(rule)}: an id that was sent for another request is a mistake, and charges nothing`,
    rules: [rule],
    steps: [
      { check: user, cost: 2, id: "one", gives: passes(1) },
      { check: user, cost: 1, id: "one", rejects: "invalid-request" },
      { check: user, id: "one", rejects: "invalid-request" },
      { check: { user: "bob" }, cost: 2, id: "one", rejects: "invalid-request" },
      { check: { ...user, path: "/x" }, cost: 2, id: "one", rejects: "invalid-request" },
      { check: user, cost: 2, id: "one", gives: passes(1) },
      { peek: { user: "bob" }, cost: 0, gives: passes(3) },
      { peek: user, cost: 0, gives: passes(1) },
      { refundId: "one", gives: true },
      { check: { user: "bob" }, id: "one", gives: passes(2) },
      { check: user, cost: 2, id: "one", rejects: "invalid-request" },
    ],
  },
  {
    name: `${nameOf(rule)}: an id may be repeated after its rule has changed`,
    rules: [rule],
    steps: [
      { check: user, id: "one", gives: passes(2) },
      { setRules: [{ ...rule, limit: 5 } as Rule] },
      { check: user, id: "one", gives: { limit: 3, ...passes(2) } },
      { peek: user, cost: 0, gives: { limit: 5, ...passes(4) } },
    ],
  },
  {
    name: `${nameOf(rule)}: a refund gives back what its decision charged, once, never above the limit`,
    rules: [rule],
    steps: [
      { check: user, cost: 2, gives: passes(1) },
      { check: user, cost: 1, gives: passes(0) },
      { refund: 0, gives: true },
      { refund: 0, gives: false },
      { peek: user, cost: 0, gives: passes(2) },
      { refund: 1, gives: true },
      { peek: user, cost: 0, gives: passes(3) },
    ],
  },
  {
    name: `${nameOf(rule)}: what is given back without a decision goes to its key alone, never above the limit`,
    rules: [rule],
    steps: [
      { giveBack: user, gives: false },
      { check: user, gives: passes(2) },
      { check: user, cost: 2, gives: passes(0) },
      { check: user, gives: refuses(reasonOf(rule)) },
      { check: { user: "bob" }, cost: 3, gives: passes(0) },
      { giveBack: user, gives: true },
      { giveBack: user, cost: 0, gives: false },
      { peek: user, cost: 0, gives: passes(1) },
      { check: user, gives: passes(0) },
      { giveBack: user, cost: 9, gives: true },
      { peek: user, cost: 0, gives: passes(3) },
      { giveBack: user, gives: false },
      { check: user, cost: 3, gives: passes(0) },
      { check: { user: "bob" }, gives: refuses(reasonOf(rule)) },
    ],
  },
  {
    name: `${nameOf(rule)}: a reset forgets one key and no other`,
    rules: [rule],
    steps: [
      ...times(3, { check: user, gives: { allowed: true } }),
      ...times(3, { check: { user: "bob" }, gives: { allowed: true } }),
      { reset: "r", attributes: user },
      { check: user, gives: passes(2) },
      { check: { user: "bob" }, gives: refuses(reasonOf(rule)) },
    ],
  },
  {
    name: `${nameOf(rule)}: a raised limit helps at once, a lowered one holds at once, and no edit gives a fresh quota`,
    rules: [rule],
    steps: [
      ...times(3, { check: user, gives: { allowed: true } }),
      { setRules: [{ ...rule, limit: 5 }] },
      { check: user, gives: passes(1) },
      { setRules: [{ ...rule, limit: 2 }] },
      { check: user, gives: refuses(reasonOf(rule)) },
      { setRules: [{ ...rule, limit: 4 }] },
      { check: user, gives: refuses(reasonOf(rule)) },
    ],
  },
]);

const short = "500ms";
const inTime: Schedule[] = (
  [
    { id: "r", key: ["user"], algorithm: "token-bucket", limit: 2, window: short },
    { id: "r", key: ["user"], algorithm: "gcra", limit: 2, window: short },
    { id: "r", key: ["user"], algorithm: "rolling-window", limit: 2, window: short, storage: "sorted-set" },
    { id: "r", key: ["user"], algorithm: "rolling-window", limit: 2, window: short, storage: "packed" },
    { id: "r", key: ["user"], algorithm: "concurrency", limit: 2, ttl: short },
  ] satisfies Rule[]
).map((rule: Rule) => ({
  name: `${nameOf(rule)}: after its window the whole limit is back`,
  rules: [rule],
  steps: [
    { check: user, cost: 2, gives: passes(0) },
    { check: user, cost: 2, gives: { allowed: false, reason: reasonOf(rule) } },
    { wait: 530 },
    { check: user, cost: 2, gives: passes(0) },
  ],
}));

const many: Schedule[] = [
  {
    name: "a request refused by one rule charges none of the others, whatever their algorithms",
    rules: [
      ...threeAYear.map((rule, i): Rule => ({ ...rule, id: `wide-${i}`, limit: 100 })),
      { id: "tight", key: ["user"], algorithm: "fixed-window", limit: 1, window: "365d" },
    ],
    steps: [
      { check: user, gives: { allowed: true, rule: "tight", remaining: 0 } },
      ...times(3, { check: user, gives: { allowed: false, violated: ["tight"], rule: "tight" } }),
      {
        peek: user,
        cost: 0,
        gives: {
          checks: [
            ...threeAYear.map((_, i) => ({ rule: `wide-${i}`, remaining: 99 })),
            { rule: "tight", remaining: 0 },
          ],
        },
      },
    ],
  },
  {
    name: "every refusing rule is named, and the one with the longest wait speaks",
    rules: [
      { id: "soon", key: ["user"], algorithm: "token-bucket", limit: 1, window: "1h" },
      { id: "late", key: ["user"], algorithm: "token-bucket", limit: 1, window: "30d" },
      { id: "open", key: [], algorithm: "token-bucket", limit: 100, window: "1h" },
    ],
    steps: [
      { check: user, gives: { allowed: true } },
      { check: user, gives: { allowed: false, violated: ["soon", "late"], rule: "late", limit: 1, reason: "limit" } },
    ],
  },
  {
    name: "a shadow rule decides and reports, but never refuses",
    rules: [
      { id: "live", key: ["user"], algorithm: "fixed-window", limit: 3, window: "365d" },
      { id: "trial", key: ["user"], algorithm: "fixed-window", limit: 1, window: "365d", mode: "shadow" },
    ],
    steps: [
      {
        check: user,
        gives: {
          allowed: true,
          checks: [
            { rule: "live", remaining: 2 },
            { rule: "trial", mode: "shadow", allowed: true },
          ],
        },
      },
      {
        check: user,
        gives: {
          allowed: true,
          rule: "live",
          violated: [],
          checks: [{ remaining: 1 }, { mode: "shadow", allowed: false, reason: "limit" }],
        },
      },
    ],
  },
  {
    name: "a candidate counts on its own, on the same traffic as its live rule, and never refuses",
    rules: [{ id: "r", key: ["user"], algorithm: "fixed-window", limit: 1, window: "365d", candidate: { limit: 2 } }],
    steps: [
      {
        check: user,
        gives: {
          allowed: true,
          checks: [
            { mode: "enforce", remaining: 0 },
            { rule: "r", mode: "candidate", limit: 2, remaining: 1 },
          ],
        },
      },
      {
        check: user,
        gives: {
          allowed: false,
          violated: ["r"],
          checks: [{ allowed: false }, { mode: "candidate", allowed: true, remaining: 0 }],
        },
      },
      {
        check: user,
        gives: { allowed: false, checks: [{ allowed: false }, { mode: "candidate", allowed: false, reason: "limit" }] },
      },
    ],
  },
  {
    name: "a candidate is not charged for a request that another rule refused",
    rules: [
      {
        id: "r",
        key: ["user"],
        algorithm: "fixed-window",
        limit: 5,
        window: "365d",
        candidate: { algorithm: "token-bucket", limit: 9 },
      },
      { id: "other", key: ["user"], algorithm: "fixed-window", limit: 1, window: "365d" },
    ],
    steps: [
      {
        check: user,
        gives: { allowed: true, checks: [{ remaining: 4 }, { mode: "candidate", remaining: 8 }, { remaining: 0 }] },
      },
      {
        check: user,
        gives: { allowed: false, checks: [{ remaining: 4 }, { mode: "candidate", remaining: 8 }, { allowed: false }] },
      },
    ],
  },
  {
    name: "an override changes the numbers of the keys it matches",
    rules: [
      {
        id: "r",
        key: ["user"],
        algorithm: "token-bucket",
        limit: 1,
        window: "365d",
        overrides: [{ match: { user: "acme" }, limit: 3 }],
      },
    ],
    steps: [
      { check: { user: "acme" }, gives: { limit: 3, ...passes(2) } },
      { check: user, gives: { limit: 1, ...passes(0) } },
    ],
  },
  {
    name: "a rule and a request id of any name do not meet",
    rules: [{ id: "id", key: [], algorithm: "fixed-window", limit: 3, window: "365d" }],
    steps: [
      { check: {}, id: "f", gives: passes(2) },
      { check: {}, gives: passes(1) },
      { check: {}, id: "f", gives: passes(2) },
    ],
  },
  ...(
    [
      { id: "r", key: ["user"], algorithm: "token-bucket", limit: 3, window: short },
      { id: "r", key: ["user"], algorithm: "gcra", limit: 3, window: short },
      { id: "r", key: ["user"], algorithm: "rolling-window", limit: 3, window: short, storage: "packed" },
      { id: "r", key: ["user"], algorithm: "rolling-window", limit: 3, window: short, storage: "sorted-set" },
    ] satisfies Rule[]
  ).map(
    (rule): Schedule => ({
      name: `${nameOf(rule)}: a longer window keeps the count that someone was refused for, past its old end`,
      rules: [rule],
      steps: [
        { check: user, cost: 3, gives: passes(0) },
        { setRules: [{ ...rule, window: "1h" }] },
        { check: user, gives: refuses() },
        { wait: 620 },
        { check: user, cost: 2, gives: { allowed: false } },
      ],
    }),
  ),
  ...(
    [
      { id: "r", key: ["user"], algorithm: "token-bucket", limit: 100, window: short },
      { id: "r", key: ["user"], algorithm: "gcra", limit: 100, window: short },
      { id: "r", key: ["user"], algorithm: "fixed-window", limit: 100, window: short },
      { id: "r", key: ["user"], algorithm: "sliding-counter", limit: 100, window: short },
    ] satisfies Rule[]
  ).map(
    (rule): Schedule => ({
      name: `${nameOf(rule)}: a refund of a charge from before an edit gives back no more than was charged`,
      rules: [rule],
      steps: [
        { check: user, gives: { allowed: true } },
        { setRules: [{ ...rule, window: "365d" }] },
        { check: user, cost: 90, gives: { allowed: true } },
        { wait: 560 },
        { refund: 0, gives: true },
        { check: user, cost: 12, gives: { allowed: false } },
      ],
    }),
  ),
  {
    name: "a longer window does not bring back a count that has ended",
    rules: [{ id: "r", key: ["user"], algorithm: "rolling-window", limit: 3, window: short }],
    steps: [
      { check: user, cost: 3, gives: passes(0) },
      { wait: 530 },
      { setRules: [{ id: "r", key: ["user"], algorithm: "rolling-window", limit: 3, window: "1h" }] },
      { check: user, gives: passes(2) },
    ],
  },
  {
    name: "a refused request holds no place, not even a candidate's",
    rules: [{ id: "r", key: ["user"], algorithm: "concurrency", limit: 1, ttl: "1h", candidate: { limit: 5 } }],
    steps: [
      { check: user, gives: { allowed: true } },
      {
        check: user,
        gives: { allowed: false, checks: [{ allowed: false }, { mode: "candidate", remaining: 4 }] },
      },
      { peek: user, cost: 0, gives: { checks: [{ remaining: 0 }, { mode: "candidate", remaining: 4 }] } },
    ],
  },
  {
    name: "a minimum interval refuses what comes too soon, and says so",
    rules: [{ id: "r", key: ["user"], algorithm: "rolling-window", limit: 10, window: "1h", minInterval: short }],
    steps: [
      { check: user, gives: passes(9) },
      { check: user, gives: { allowed: false, reason: "min-interval", remaining: 9 } },
      { wait: 530 },
      { check: user, gives: passes(8) },
    ],
  },
  {
    name: "a lease holds its place until it is released; releasing twice is harmless",
    rules: [{ id: "r", key: ["user"], algorithm: "concurrency", limit: 1, ttl: "1h" }],
    steps: [
      { check: user, gives: { allowed: true, lease: { expiresAfterMs: 3_600_000 } } },
      { check: user, gives: refuses("concurrency") },
      { release: 0, gives: true },
      { release: 0, gives: false },
      { check: user, gives: passes(0) },
    ],
  },
  {
    name: "a renewed lease outlives its first term; one that ended cannot be renewed",
    rules: [{ id: "r", key: ["user"], algorithm: "concurrency", limit: 1, ttl: short }],
    steps: [
      { check: user, gives: { allowed: true } },
      { wait: 300 },
      { renew: 0, gives: true },
      { wait: 300 },
      { check: user, gives: refuses("concurrency") },
      { wait: 300 },
      { check: user, gives: { allowed: true } },
      { renew: 0, gives: false },
    ],
  },
  {
    name: "places given back by nobody in particular are the oldest lease's; a lease that lost a place cannot be renewed",
    rules: [{ id: "r", key: ["user"], algorithm: "concurrency", limit: 3, ttl: "365d" }],
    steps: [
      { check: user, gives: passes(2) },
      { wait: 20 },
      { check: user, cost: 2, gives: passes(0) },
      { giveBack: user, gives: true },
      { release: 0, gives: false },
      { renew: 1, gives: true },
      { peek: user, cost: 0, gives: passes(1) },
      { giveBack: user, gives: true },
      { renew: 1, gives: false },
      { peek: user, cost: 0, gives: passes(3) },
    ],
  },
  {
    name: "a lease of several places frees them all",
    rules: [{ id: "r", key: ["user"], algorithm: "concurrency", limit: 3, ttl: "1h" }],
    steps: [
      { check: user, cost: 3, gives: passes(0) },
      { release: 0, gives: true },
      { check: user, cost: 3, gives: passes(0) },
    ],
  },
  {
    name: "a window may be one millisecond, and a limit a million",
    rules: [
      { id: "tiny", key: ["user"], algorithm: "rolling-window", limit: 1, window: "1ms" },
      { id: "huge", key: ["user"], algorithm: "token-bucket", limit: 1_000_000, window: "365d" },
    ],
    steps: [
      { check: user, gives: { allowed: true } },
      { wait: 3 },
      { check: user, gives: { allowed: true } },
      { wait: 3 },
      { peek: user, cost: 0, gives: { checks: [{ remaining: 1 }, { remaining: 999_998 }] } },
    ],
  },
  {
    name: "calendar days are counted in their time zone",
    rules: [
      {
        id: "day",
        key: ["user"],
        algorithm: "fixed-window",
        limit: 2,
        window: "1d",
        align: "calendar",
        timezone: "Pacific/Auckland",
      },
      {
        id: "month",
        key: ["user"],
        algorithm: "fixed-window",
        limit: 5,
        window: "month",
        align: "calendar",
        timezone: "America/New_York",
      },
    ],
    steps: [
      { check: user, cost: 2, gives: passes(0) },
      { check: user, gives: { ...refuses(), violated: ["day"], checks: [{ allowed: false }, { remaining: 3 }] } },
    ],
  },
  ...[
    " ",
    ":",
    "{",
    "}",
    "{}",
    "a}b{c",
    "\u0000",
    "\r\n",
    "é",
    "🙂",
    "%7b",
    "x".repeat(10_240),
    "y".repeat(10_240),
  ].map(
    (strange): Schedule => ({
      name: `the key ${JSON.stringify(strange.slice(0, 12))} is counted on its own`,
      rules: [{ id: "r", key: ["user", "path"], algorithm: "rolling-window", limit: 1, window: "365d" }],
      steps: [
        { check: { user: strange, path: "p" }, gives: passes(0) },
        { check: { user: strange, path: "p" }, gives: refuses() },
        { check: { user: "p", path: strange }, gives: passes(0) },
        { check: { user: `${strange}p`, path: "" }, gives: passes(0) },
        { check: { user: strange.slice(1), path: `${strange.slice(0, 1)}p` }, gives: { allowed: true } },
      ],
    }),
  ),
];

const refusesForever = { ...refuses(), limit: 0, retryAfterMs: 2 ** 31 - 1 };

/** A limit of 0, for every algorithm. */
const denying: Schedule[] = threeAYear.map((rule) => ({
  name: `${nameOf(rule)}: a limit of 0 refuses everything but a look, as a rule's and as an override's`,
  rules: [
    { ...rule, overrides: [{ match: { user: "bad" }, limit: 0 }] } as Rule,
    { ...rule, id: "none", key: ["tenant"], limit: 0 },
  ],
  steps: [
    { check: user, gives: { allowed: true, remaining: 2 } },
    { check: { user: "bad" }, gives: refusesForever },
    { check: { user: "bad" }, cost: 0, gives: { allowed: true, remaining: 0 } },
    { check: { tenant: "t" }, cost: 7, gives: refusesForever },
    // Nothing was charged to the rule that would have passed it.
    { check: { ...user, tenant: "t" }, gives: { ...refusesForever, rule: "none", violated: ["none"] } },
    { check: user, gives: { allowed: true, remaining: 1 } },
    { setRules: [rule] },
    { check: { user: "bad" }, gives: { allowed: true, remaining: 2 } },
  ],
}));

const blocking = threeAYear.filter(({ algorithm }) => algorithm !== "concurrency");

/** Blocks, for every algorithm that counts. */
const blocks: Schedule[] = [
  ...blocking.flatMap((rule): Schedule[] => [
    {
      name: `${nameOf(rule)}: a refused key is blocked, whatever its counter says, until a reset`,
      rules: [{ ...rule, blockFor: "730d" } as Rule],
      steps: [
        ...times(3, { check: user, gives: { allowed: true } }),
        { peek: user, gives: { ...refuses(), retryAfterMs: 63_072_000_000 } },
        { check: user, gives: { ...refuses(), retryAfterMs: 63_072_000_000 } },
        { check: user, gives: { ...refuses("blocked") } },
        { peek: user, gives: { ...refuses("blocked") } },
        { check: user, cost: 0, gives: { allowed: true } },
        { refund: 0, gives: true },
        { giveBack: user, cost: 3, gives: true },
        { check: user, gives: { ...refuses("blocked"), violated: ["r"] } },
        { check: { user: "bob" }, gives: { allowed: true } },
        { reset: "r", attributes: user },
        { check: user, gives: { allowed: true, remaining: 2 } },
      ],
    },
    {
      name: `${nameOf(rule)}: a cost above the limit and a charge block nobody; a rule in shadow only says that it would`,
      rules: [
        { ...rule, blockFor: "730d" } as Rule,
        { ...rule, id: "s", mode: "shadow", blockFor: "730d", limit: 1 } as Rule,
      ],
      steps: [
        { check: user, cost: 4, gives: { allowed: false, reason: "cost-exceeds-limit" } },
        { check: user, gives: { allowed: true, remaining: 2 } },
        {
          check: user,
          gives: { allowed: true, remaining: 1, checks: [{ allowed: true }, { allowed: false, reason: "limit" }] },
        },
        {
          check: user,
          gives: { allowed: true, remaining: 0, checks: [{ allowed: true }, { allowed: false, reason: "blocked" }] },
        },
        { charge: user, cost: 2, gives: { allowed: true, debt: 2 } },
        { giveBack: user, cost: 3, gives: true },
        { check: user, gives: { allowed: true, remaining: 0 } },
        { check: user, gives: { ...refuses() } },
      ],
    },
  ]),
  {
    name: "a key that is blocked passes when its block is over, and the next block is longer",
    rules: [
      { id: "r", key: ["user"], algorithm: "rolling-window", limit: 1, window: "365d", blockFor: ["150ms", "400ms"] },
    ],
    steps: [
      { check: user, gives: { allowed: true } },
      { check: user, gives: { ...refuses() } },
      { check: user, gives: { ...refuses("blocked") } },
      { giveBack: user, gives: true },
      { wait: 160 },
      // Its block is over, and its counter has room.
      { check: user, gives: { allowed: true } },
      { check: user, gives: { ...refuses() } },
      { giveBack: user, gives: true },
      { wait: 160 },
      // The second block is longer than the first.
      { check: user, gives: { ...refuses("blocked") } },
      { wait: 300 },
      { check: user, gives: { allowed: true } },
    ],
  },
];

const settled = (charged: Record<string, number>, overrun: Record<string, number> = {}): Record<string, unknown> => ({
  settled: true,
  charged,
  overrun,
});

/** Reservations, for every algorithm that counts units. */
const reservations: Schedule[] = threeAYear
  .filter(({ algorithm }) => algorithm !== "concurrency")
  .flatMap((rule): Schedule[] => {
    const estimated = { ...rule, limit: 100, cost: { attribute: "units" }, estimate: { default: 40 } } as Rule;
    const stopping = { ...estimated, estimate: { default: 40, overrun: "stop" } } as Rule;
    // A bucket gives back what its refill has not paid, rounded down: in real time a fraction of a unit may stay charged.
    const isBucket = rule.algorithm === "token-bucket" || rule.algorithm === "gcra";
    const all: unknown = isBucket ? expect.toBeOneOf([99, 100]) : 100;
    return [
      {
        name: `${nameOf(rule)}: an estimate is held, the real cost settled once, and a cancelled one given back`,
        rules: [estimated],
        steps: [
          { check: user, gives: { ...passes(60), reservation: { held: { r: 40 } } } },
          { check: user, gives: { ...passes(20), reservation: { held: { r: 40 } } } },
          { check: user, gives: { allowed: false, remaining: 20, reason: "limit" } },
          { settle: 0, costs: { units: 10 }, gives: settled({ r: 10 }) },
          { settle: 0, costs: { units: 90 }, gives: settled({ r: 10 }) },
          { cancel: 0, gives: settled({ r: 10 }) },
          { peek: user, cost: 0, gives: { remaining: 50 } },
          { cancel: 1, gives: settled({ r: 0 }) },
          { peek: user, cost: 0, gives: { remaining: 90 } },
          { check: { ...user, units: 30 }, gives: passes(60) },
        ],
      },
      {
        name: `${nameOf(rule)}: a request that cost more than was held leaves a debt`,
        rules: [estimated],
        steps: [
          { check: user, gives: passes(60) },
          { settle: 0, costs: { units: 130 }, gives: settled({ r: 130 }, { r: 90 }) },
          { check: user, gives: { ...refuses(), debt: 30 } },
          { settle: 0, costs: { units: 130 }, gives: settled({ r: 130 }, { r: 90 }) },
          { peek: user, cost: 0, gives: { debt: 30 } },
        ],
      },
      {
        name: `${nameOf(rule)}: an extension holds up to so much in all, and is refused where nothing is left`,
        rules: [stopping],
        steps: [
          { check: user, gives: passes(60) },
          { extend: 0, costs: { units: 70 }, gives: { ...passes(30), reservation: { held: { r: 70 } } } },
          { extend: 0, costs: { units: 70 }, gives: { ...passes(30), reservation: { held: { r: 70 } } } },
          { extend: 0, costs: { units: 101 }, gives: { allowed: false, remaining: 30, reason: "limit" } },
          { peek: user, cost: 0, gives: { remaining: 30 } },
          { settle: 0, costs: { units: 45 }, gives: settled({ r: 45 }) },
          { peek: user, cost: 0, gives: { remaining: 55 } },
        ],
      },
      {
        name: `${nameOf(rule)}: a reservation beside a reset, a refund and a repeated id`,
        rules: [estimated],
        steps: [
          { check: user, gives: passes(60) },
          { reset: "r", attributes: user },
          { wait: 2 },
          { check: user, id: "held", gives: passes(60) },
          { settle: 0, costs: { units: 1 }, gives: settled({ r: 1 }) },
          { check: user, id: "held", gives: { ...passes(60), reservation: { held: { r: 40 } } } },
          { refundId: "held", gives: true },
          { peek: user, cost: 0, gives: { remaining: all } },
          { settle: 1, costs: { units: 30 }, gives: settled({ r: 0 }) },
          { peek: user, cost: 0, gives: { remaining: all } },
        ],
      },
    ];
  });

/** Rules of one request, in several slots of a cluster. */
const reservedTogether: Schedule[] = [
  {
    name: "tokens by user and by organisation, requests and places are reserved together or not at all",
    rules: [
      { id: "places", key: ["org"], algorithm: "concurrency", limit: 2, ttl: "365d" },
      { id: "requests", key: ["user"], algorithm: "fixed-window", limit: 3, window: "365d" },
      {
        id: "user-tokens",
        key: ["user"],
        algorithm: "gcra",
        limit: 50,
        window: "365d",
        cost: { attribute: "units" },
        estimate: { default: 20 },
      },
      {
        id: "org-tokens",
        key: ["org"],
        algorithm: "token-bucket",
        limit: 70,
        window: "365d",
        cost: { attribute: "units" },
        estimate: { default: 25 },
        candidate: { limit: 30 },
      },
      {
        id: "input",
        key: [],
        algorithm: "fixed-window",
        limit: 1000,
        window: "365d",
        mode: "shadow",
        cost: { attribute: "input" },
        estimate: { default: 5 },
      },
    ],
    steps: [
      {
        check: { user: "ann", org: "o" },
        gives: { allowed: true, reservation: { held: { "user-tokens": 20, "org-tokens": 25, input: 5 } } },
      },
      { release: 0, gives: true },
      { check: { user: "ann", org: "o" }, gives: { allowed: true } },
      { check: { user: "bob", org: "o" }, gives: { allowed: false, violated: ["org-tokens"] } },
      {
        peek: { user: "bob", org: "o" },
        cost: 0,
        gives: { checks: [{}, { remaining: 3 }, { remaining: 50 }, {}, {}, {}] },
      },
      {
        settle: 0,
        costs: { units: 10 },
        gives: settled({ "user-tokens": 10, "org-tokens": 10, input: 5 }),
      },
      {
        settle: 1,
        costs: { units: 30, input: 7 },
        gives: settled(
          { "user-tokens": 30, "org-tokens": 30, input: 7 },
          { "user-tokens": 10, "org-tokens": 5, input: 2 },
        ),
      },
      {
        peek: { user: "ann", org: "o" },
        cost: 0,
        gives: { checks: [{}, { remaining: 1 }, { remaining: 10 }, { remaining: 30 }, {}, { remaining: 988 }] },
      },
    ],
  },
  ...(["finish", "stop"] as const).map((overrun): Schedule => {
    const sortedSet = { algorithm: "rolling-window", storage: "sorted-set", limit: 20_000, window: "365d" } as const;
    const rule: Rule = {
      ...sortedSet,
      id: "r",
      key: ["user"],
      cost: { attribute: "units" },
      estimate: { default: 40, overrun },
    };
    const refused = { allowed: false, remaining: 19_960, reason: "cost-exceeds-limit" };
    const held = { ...passes(15_000), reservation: { held: { r: 5_000 } } };
    return {
      name: `a reservation holds at most 5000 entries of a sorted set, for each is removed on its own (overrun: ${overrun})`,
      rules: [rule],
      steps: [
        { check: user, gives: passes(19_960) },
        { extend: 0, costs: { units: 6_000 }, gives: overrun === "stop" ? refused : held },
        {
          settle: 0,
          costs: { units: 6_000 },
          gives: settled({ r: 6_000 }, { r: overrun === "stop" ? 5_960 : 1_000 }),
        },
        { peek: user, cost: 0, gives: { remaining: 14_000 } },
      ],
    };
  }),
  {
    name: "a reservation that is not settled by its end stands as spent",
    rules: [
      {
        id: "r",
        key: ["user"],
        algorithm: "token-bucket",
        limit: 100,
        window: "365d",
        cost: { attribute: "units" },
        estimate: { default: 40, ttl: "1s" },
      },
    ],
    steps: [
      { check: user, gives: passes(60) },
      { wait: 1_020 },
      {
        settle: 0,
        costs: { units: 1 },
        gives: { settled: false, charged: { r: 40 }, overrun: {}, reason: "expired" },
      },
      { peek: user, cost: 0, gives: { remaining: 60 } },
    ],
  },
];
/** Of a wait: real time passes on some stores, so it is a span. */
const within = (leastMs: number, mostMs: number): unknown => ({
  asymmetricMatch: (found: unknown) => typeof found === "number" && found >= leastMs && found <= mostMs,
  toString: () => `from ${leastMs} to ${mostMs}`,
});

const hourly = { id: "r", key: ["user"], limit: 3, window: "1h", maxWait: "1h" } as const;
const turned: { rule: Rule; delayMs: unknown }[] = [
  { rule: { ...hourly, algorithm: "token-bucket" }, delayMs: within(1_190_000, 1_200_000) },
  { rule: { ...hourly, algorithm: "gcra" }, delayMs: within(1_190_000, 1_200_000) },
  { rule: { ...hourly, algorithm: "fixed-window" }, delayMs: within(1, 3_600_000) },
  { rule: { ...hourly, algorithm: "rolling-window", storage: "sorted-set" }, delayMs: within(3_590_000, 3_600_000) },
  { rule: { ...hourly, algorithm: "rolling-window", storage: "packed" }, delayMs: within(3_590_000, 3_600_000) },
];
const goesOn = { ...passes(0), delayMs: 0 };

/** Turns in the future, for every algorithm that hands them out. */
const turns: Schedule[] = turned.flatMap(({ rule, delayMs }): Schedule[] => {
  const waits = { ...passes(0), delayMs, checks: [{ rule: "r", allowed: true, delayMs }] };
  const full: Step[] = [
    { check: user, cost: 2, gives: { ...passes(1), delayMs: 0 } },
    { check: user, gives: goesOn },
  ];
  return [
    {
      name: `${nameOf(rule)}: what does not fit now gets a turn, and what would wait too long is refused`,
      rules: [rule],
      steps: [
        ...full,
        { peek: user, gives: waits },
        { check: user, gives: waits },
        { check: user, cost: 3, gives: { ...refuses(), delayMs: 0, violated: ["r"] } },
        { check: user, cost: 4, gives: { ...refuses("cost-exceeds-limit"), delayMs: 0 } },
        { check: user, cost: 0, gives: { allowed: true, delayMs: 0 } },
        { check: { user: "bob" }, gives: { ...passes(2), delayMs: 0 } },
        { reset: "r", attributes: user },
        { check: user, gives: { ...passes(2), delayMs: 0 } },
      ],
    },
    {
      name: `${nameOf(rule)}: a turn that is given back is the next one's, whole or in parts`,
      rules: [{ ...rule, limit: 2, window: "1h" } as Rule],
      steps: [
        { check: user, cost: 2, gives: goesOn },
        // A bucket of two fills in the hour: then both units are there.
        { check: user, cost: 2, gives: { allowed: true, delayMs: within(1, 3_600_000) } },
        { check: user, cost: 2, gives: refuses() },
        { refund: 1, gives: true },
        { refund: 1, gives: false },
        { check: user, gives: { allowed: true, delayMs: within(1, 3_600_000) } },
        { check: user, gives: { allowed: true, delayMs: within(1, 3_600_000) } },
        { check: user, cost: 2, gives: refuses() },
      ],
    },
    {
      name: `${nameOf(rule)}: the same id has one turn, given back by its id`,
      rules: [rule],
      steps: [
        ...full,
        { check: user, id: "mine", gives: waits },
        { check: user, id: "mine", gives: { ...passes(0), delayMs } },
        { refundId: "mine", gives: true },
        { refundId: "mine", gives: false },
        { check: user, id: "mine", gives: waits },
      ],
    },
    {
      name: `${nameOf(rule)}: a request that another rule refuses takes no turn`,
      rules: [rule, { id: "none", match: { path: "/no" }, key: ["user"], algorithm: "gcra", limit: 0, window: "1s" }],
      steps: [
        ...full,
        { check: { ...user, path: "/no" }, gives: { allowed: false, delayMs: 0, violated: ["none"] } },
        { check: user, gives: { allowed: true, delayMs } },
      ],
    },
  ];
});

/** A turn comes; one that nobody took by then is refunded. */
const turnsInTime: Schedule[] = (["sorted-set", "packed"] as const).map((storage) => ({
  name: `rolling-window (${storage}): a turn that was given back, and not taken by its time, is refunded`,
  rules: [{ id: "r", key: ["user"], algorithm: "rolling-window", limit: 1, window: "300ms", storage, maxWait: "1m" }],
  steps: [
    { check: user, gives: goesOn },
    { check: user, gives: { allowed: true, delayMs: within(0, 300) } },
    { check: user, gives: { allowed: true, delayMs: within(0, 600) } },
    { refund: 2, gives: true },
    { refund: 1, gives: true },
    { wait: 650 },
    { check: user, gives: goesOn },
  ],
}));

export const schedules: readonly Schedule[] = [
  ...perAlgorithm,
  ...charges,
  ...denying,
  ...blocks,
  ...reservations,
  ...reservedTogether,
  ...turns,
  ...turnsInTime,
  ...inTime,
  ...many,
];
