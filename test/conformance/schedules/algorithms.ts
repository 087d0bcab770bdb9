/** What every algorithm must answer, one rule at a time; and that what was used comes back in time. */
import type { Rule } from "sluice";
import {
  nameOf,
  passes,
  reasonOf,
  refuses,
  type Schedule,
  type Step,
  short,
  threeAYear,
  times,
  user,
} from "./schedule.js";

export const perAlgorithm: Schedule[] = threeAYear.flatMap((rule): Schedule[] => [
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

export const inTime: Schedule[] = (
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
    { wait: 2_030 },
    { check: user, cost: 2, gives: passes(0) },
  ],
}));
