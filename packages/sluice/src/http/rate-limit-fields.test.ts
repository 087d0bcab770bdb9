import { expect, test } from "vitest";
import { type Verdict, verdict } from "../algorithms/model.js";
import type { Policy } from "../algorithms/policy.js";
import type { Check } from "../check.js";
import { type Degraded, NEVER_MS } from "../decision.js";
import { Decision } from "../limiter/decision.js";
import { type HeaderFormat, rateLimitFields, retryAfterSeconds, windowMsOf } from "./rate-limit-fields.js";

const minute: Policy = { stored: "fixed-window", limit: 100, windowMs: 60_000 };
const places: Policy = { stored: "concurrency", limit: 5, ttlMs: 1_000 };

function decisionOf(
  checks: readonly (readonly [rule: string, policy: Policy, found: Verdict, mode?: string])[],
  degraded?: Degraded,
): Decision {
  const request = {
    checks: checks.map(
      ([rule, policy, , mode = "enforce"]) =>
        ({ key: rule, cost: 1, live: -1, plan: { rule, mode, variant: undefined, policy } }) as unknown as Check,
    ),
    charge: true,
    entryId: "",
    id: undefined,
    fingerprint: "",
    rulesVersion: 1,
  };
  const reply = { nowMs: 10_000, verdicts: checks.map(([, , found]) => found), guarantee: "atomic" as const };
  return new Decision({ request, reply, charger: "store", lease: undefined, degraded });
}

const passed = verdict(true, 40, 0, 20_500, undefined);
const refused = verdict(false, 0, 1_400, 20_500, "limit");

test.each([
  ["draft-11", 'RateLimit-Policy: "a";q=100;w=60 | RateLimit: "a";r=40;t=21'],
  ["draft-7", "RateLimit-Policy: 100;w=60 | RateLimit: limit=100, remaining=40, reset=21"],
  ["draft-6", "RateLimit-Policy: 100;w=60 | RateLimit-Limit: 100 | RateLimit-Remaining: 40 | RateLimit-Reset: 21"],
  ["legacy", "X-RateLimit-Limit: 100 | X-RateLimit-Remaining: 40 | X-RateLimit-Reset: 31"],
] as [HeaderFormat, string][])("%s", (format, fields) => {
  const spelled = rateLimitFields(format)([decisionOf([["a", minute, passed]])]);
  expect(spelled.map((field) => field.join(": ")).join(" | ")).toBe(fields);
});

test("every enforced policy is listed, and the refusing one is reported", () => {
  const fields = rateLimitFields()([
    decisionOf([
      ["a", minute, passed],
      ["b", minute, refused],
      ["c", minute, refused, "shadow"],
    ]),
  ]);
  expect(fields).toEqual([
    ["RateLimit-Policy", '"a";q=100;w=60, "b";q=100;w=60'],
    ["RateLimit", '"b";r=0;t=2'],
  ]);
});

test("a number above the largest of RFC 9651 is sent as that, so that the field stays readable", () => {
  const unlimited: Policy = { ...minute, limit: Number.MAX_SAFE_INTEGER };
  const found = verdict(true, Number.MAX_SAFE_INTEGER - 1, 0, 20_500, undefined);
  expect(rateLimitFields()([decisionOf([["a", unlimited, found]])])).toEqual([
    ["RateLimit-Policy", '"a";q=999999999999999;w=60'],
    ["RateLimit", '"a";r=999999999999999;t=21'],
  ]);
});

test("places have a unit and no window, and report a time only when refused", () => {
  const of = (found: Verdict) => rateLimitFields()([decisionOf([["p", places, found]])]).map(([, value]) => value);
  expect(of(verdict(true, 2, 0, 900, undefined))).toEqual(['"p";q=5;qu="concurrent-requests"', '"p";r=2']);
  expect(of(verdict(false, 0, 900, 900, "concurrency"))[1]).toBe('"p";r=0;t=1');
});

test("if a failure policy answers for the store, no number is made up; local counts are reported", () => {
  const names = (degraded: Degraded) =>
    rateLimitFields()([decisionOf([["a", minute, passed]], degraded)]).map(([name]) => name);
  expect(names("allow")).toEqual(["RateLimit-Policy"]);
  expect(names("local")).toEqual(["RateLimit-Policy", "RateLimit"]);
});

test("of two decisions the tighter one is reported", () => {
  const tight = decisionOf([["t", minute, verdict(true, 1, 0, 5_000, undefined)]]);
  const fields = rateLimitFields()([decisionOf([["a", minute, passed]]), tight]);
  expect(fields[1]).toEqual(["RateLimit", '"t";r=1;t=5']);
});

test("nothing is sent without rules or with false, and an unknown format is refused", () => {
  expect(rateLimitFields()([decisionOf([])])).toEqual([]);
  expect(rateLimitFields(false)([decisionOf([["a", minute, passed]])])).toEqual([]);
  expect(() => rateLimitFields("draft-5" as HeaderFormat)).toThrow("headers: expected one of draft-11, draft-7");
});

test("a client is asked to wait at least a second, or nothing is sent if no wait helps", () => {
  const wait = (ms: number) => retryAfterSeconds({ allowed: false, retryAfterMs: ms } as Decision);
  expect([wait(1), wait(1_000), wait(1_001), wait(NEVER_MS)]).toEqual([1, 1, 2, undefined]);
  expect(retryAfterSeconds({ allowed: true, retryAfterMs: 0 } as Decision)).toBeUndefined();
});

test("a bucket's window is the time in which it gives its whole limit", () => {
  expect(windowMsOf({ stored: "gcra", limit: 10, capacity: 3, amount: 2, scaleMs: 300 })).toBe(1_500);
  expect(windowMsOf(places)).toBeUndefined();
});

test("a list that is too long for a proxy's buffer keeps the reported policy, then those that refused, up to its bound", () => {
  const many = Array.from({ length: 1_000 }, (_, i) => [`rule-${i}-${"x".repeat(50)}`, minute, passed] as const);
  const checks = [
    ...many,
    ["first-refused", minute, verdict(false, 0, 1_000, 20_500, "limit")],
    ["speaks", minute, refused],
  ];
  const [[, policy], [, rateLimit]] = rateLimitFields()([decisionOf(checks as never)]) as [
    [string, string],
    [string, string],
  ];
  expect(rateLimit).toBe('"speaks";r=0;t=2');
  expect(policy.startsWith('"speaks";q=100;w=60, "first-refused";q=100;w=60, "rule-0-x')).toBe(true);
  expect(policy).toMatch(/;w=60$/);
  expect(policy.length).toBeLessThanOrEqual(1_024);
  for (const format of ["draft-7", "draft-6"] as const) {
    const [[, listed]] = rateLimitFields(format)([decisionOf(checks as never)]) as unknown as [[string, string]];
    expect(listed.length).toBeLessThanOrEqual(1_024);
  }
});

test("a list that fits is in the rules' order, whichever is reported", () => {
  const fields = rateLimitFields()([
    decisionOf(Array.from({ length: 40 }, (_, i) => [`r${i}`, minute, i === 39 ? refused : passed] as const)),
  ]);
  expect(fields[0]![1].split(", ").map((item) => item.slice(0, item.indexOf(";")))).toEqual(
    Array.from({ length: 40 }, (_, i) => `"r${i}"`),
  );
});
