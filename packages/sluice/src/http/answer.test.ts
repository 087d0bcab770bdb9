import { parseList } from "structured-headers";
import { expect, test } from "vitest";
import { createLimiter } from "../limiter/limiter.js";
import type { Rule } from "../rules/rule.js";
import { virtualClock } from "../testing.js";
import { answerOf } from "./answer.js";

/** The answer to the `count`-th request under these rules. */
async function answerAfter(count: number, rules: Rule[], options: Parameters<typeof answerOf>[1] = {}) {
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules });
  for (let i = 1; i < count; i++) await limiter.check({ user: "a" });
  return answerOf(await limiter.check({ user: "a" }), options);
}

const rolling: Rule = { id: "r", key: ["user"], algorithm: "rolling-window", limit: 1, window: "1m" };

test("an allowed request is answered 200 with fields and without a body", async () => {
  expect(await answerAfter(1, [rolling])).toEqual({
    status: 200,
    headers: { "RateLimit-Policy": '"r";q=1;w=60', RateLimit: '"r";r=0;t=60' },
  });
});

test("a refused request is answered 429 with Retry-After and a problem", async () => {
  const { status, headers, body } = await answerAfter(2, [rolling]);
  expect(status).toBe(429);
  expect(headers).toEqual({
    "RateLimit-Policy": '"r";q=1;w=60',
    RateLimit: '"r";r=0;t=60',
    "Retry-After": "60",
    "Content-Type": "application/problem+json",
  });
  expect(body).toMatchObject({ status: 429, "violated-policies": ["r"], retryAfterMs: 60_000 });
});

test("a refusal names the rule's unit", async () => {
  const { body } = await answerAfter(2, [{ ...rolling, unit: "tokens" }]);
  expect(body?.detail).toBe('The quota of "r" (1 tokens per 1m) is used up. Try again in 60 s.');
});

test.each<[string, Rule, string]>([
  [
    "a bucket tells the time in which it fills",
    { id: "b", key: [], algorithm: "token-bucket", limit: 10, refill: { amount: 3, every: "1s" } },
    '"b";q=10;w=4',
  ],
  [
    "gcra tells its window, whatever the burst",
    { id: "g", key: [], algorithm: "gcra", limit: 10, window: "1m", burst: 2 },
    '"g";q=10;w=60',
  ],
  [
    "a window below a second is one second",
    { id: "s", key: [], algorithm: "sliding-counter", limit: 5, window: "250ms" },
    '"s";q=5;w=1',
  ],
  [
    "a window of one second and a bit is two",
    { id: "f", key: [], algorithm: "fixed-window", limit: 5, window: "1.1s" },
    '"f";q=5;w=2',
  ],
  [
    "places have a unit and no window",
    { id: "c", key: [], algorithm: "concurrency", limit: 5 },
    '"c";q=5;qu="concurrent-requests"',
  ],
])("%s", async (_name, rule, policy) => {
  const { headers } = await answerAfter(1, [rule]);
  expect(headers["RateLimit-Policy"]).toBe(policy);
  expect(() => parseList(headers["RateLimit-Policy"]!)).not.toThrow();
});

test("overrides and variants report the numbers that applied to the request", async () => {
  const rule: Rule = { ...rolling, limit: 10, overrides: [{ match: { user: "a" }, limit: 70, window: "2h" }] };
  expect((await answerAfter(1, [rule])).headers["RateLimit-Policy"]).toBe('"r";q=70;w=7200');
});

test("Retry-After is never earlier than t, nor than the wait itself", async () => {
  const rules: Rule[] = [
    { ...rolling, limit: 3, window: "90s", minInterval: "1500ms" },
    { ...rolling, id: "day", limit: 100, window: "1d" },
  ];
  const { headers, body } = await answerAfter(2, rules);
  const [[, parameters]] = parseList(headers.RateLimit!) as unknown as [[string, Map<string, number>]];
  expect(headers["Retry-After"]).toBe("2");
  expect(parameters.get("t")).toBe(2);
  expect(body?.detail).toBe('Requests under "r" follow each other too closely. Try again in 2 s.');
});

test("legacy fields count from 1970, or from now if configured", async () => {
  const reset = async (legacyReset: "epoch" | "delta") =>
    (await answerAfter(1, [rolling], { headers: "legacy", legacyReset })).headers["X-RateLimit-Reset"];
  expect(await reset("delta")).toBe("60");
  expect(await reset("epoch")).toBe(String(Date.UTC(2026, 0, 1) / 1000 + 60));
});

test("with all fields off, Retry-After remains, because it belongs to the refusal", async () => {
  const { headers } = await answerAfter(2, [rolling], { headers: false });
  expect(Object.keys(headers)).toEqual(["Retry-After", "Content-Type"]);
});

test.each([
  ["day", 86_400],
  ["week", 7 * 86_400],
  ["month", 31 * 86_400],
] as const)("a calendar %s is reported as a window of %i s", async (window, seconds) => {
  const rule: Rule = { id: "r", key: ["user"], algorithm: "fixed-window", limit: 2, window, align: "calendar" };
  expect((await answerAfter(1, [rule])).headers["RateLimit-Policy"]).toBe(`"r";q=2;w=${seconds}`);
});
