/** Several rules in one request, shadow rules, candidates, overrides, leases, and what else a rule can say. */
import type { Rule } from "sluice";
import { nameOf, passes, refuses, type Schedule, short, threeAYear, times, user } from "./schedule.js";

export const many: Schedule[] = [
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
        { wait: 2_120 },
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
        { wait: 2_060 },
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
      { wait: 2_030 },
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
      { wait: 2_030 },
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
    // A second to spare at each step: what a busy machine may be late.
    rules: [{ id: "r", key: ["user"], algorithm: "concurrency", limit: 1, ttl: "3s" }],
    steps: [
      { check: user, gives: { allowed: true } },
      { wait: 2_000 },
      { renew: 0, gives: true },
      { wait: 2_000 },
      { check: user, gives: refuses("concurrency") },
      { wait: 2_000 },
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
