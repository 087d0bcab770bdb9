/** Turns in the future, for every algorithm that hands them out. */
import type { Rule } from "sluice";
import { nameOf, passes, refuses, type Schedule, type Step, user } from "./schedule.js";

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
export const turns: Schedule[] = turned.flatMap(({ rule, delayMs }): Schedule[] => {
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
      name: `${nameOf(rule)}: a caller that waits less than the rule lets it takes no turn further away, and moves no other`,
      rules: [{ ...rule, limit: 1, window: "1h", maxWait: "1h" } as Rule],
      steps: [
        { check: user, gives: goesOn },
        { check: user, maxWaitMs: 0, gives: { ...refuses(), delayMs: 0 } },
        { check: user, maxWaitMs: 10, gives: { ...refuses(), delayMs: 0 } },
        { check: user, maxWaitMs: 3_600_000, gives: { allowed: true, delayMs: within(1, 3_600_000) } },
        { check: user, maxWaitMs: 10, gives: { ...refuses(), delayMs: 0 } },
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
export const turnsInTime: Schedule[] = (["sorted-set", "packed"] as const).map((storage) => ({
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
