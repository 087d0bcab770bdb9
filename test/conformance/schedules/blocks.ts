/** A limit of 0, and blocks, for every algorithm. */
import type { Rule } from "sluice";
import { nameOf, refuses, type Schedule, threeAYear, times, user } from "./schedule.js";

const refusesForever = { ...refuses(), limit: 0, retryAfterMs: 2 ** 31 - 1 };

/** A limit of 0, for every algorithm. */
export const denying: Schedule[] = threeAYear.map((rule) => ({
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
export const blocks: Schedule[] = [
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
      { id: "r", key: ["user"], algorithm: "rolling-window", limit: 1, window: "365d", blockFor: ["600ms", "2s"] },
    ],
    steps: [
      { check: user, gives: { allowed: true } },
      { check: user, gives: { ...refuses() } },
      { check: user, gives: { ...refuses("blocked") } },
      { giveBack: user, gives: true },
      { wait: 610 },
      // Its block is over, and its counter has room.
      { check: user, gives: { allowed: true } },
      { check: user, gives: { ...refuses() } },
      { giveBack: user, gives: true },
      { wait: 610 },
      // The second block is longer than the first.
      { check: user, gives: { ...refuses("blocked") } },
      { wait: 1_400 },
      { check: user, gives: { allowed: true } },
    ],
  },
];
