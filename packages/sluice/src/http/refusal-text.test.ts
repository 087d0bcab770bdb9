import { expect, test, vi } from "vitest";
import type { Decision } from "../limiter/decision.js";
import { createLimiter } from "../limiter/limiter.js";
import type { Rule } from "../rules/rule.js";
import { answerOf } from "./answer.js";
import { refusalText } from "./refusal-text.js";

const rule: Rule = { id: "r", key: ["user"], algorithm: "rolling-window", limit: 1, window: "1m" };

test("equals the refusal's answer, whatever was cached before", async () => {
  const rules: Rule[] = [
    rule,
    { ...rule, id: "spaced", key: ["spaced"], limit: 9, minInterval: "10s" } as Rule,
    { ...rule, id: "none", key: ["none"], limit: 0 },
    { ...rule, id: "blocked", key: ["blocked"], blockFor: "1h" } as Rule,
    { id: "places", key: ["place"], algorithm: "concurrency", limit: 1, ttl: "1m" } as Rule,
    { ...rule, id: "first", key: ["both"], limit: 2 },
    { ...rule, id: "second", key: ["both"], limit: 1 },
  ];
  const limiter = createLimiter({ rules });
  const asked = ["user", "spaced", "none", "blocked", "place", "both"];
  let refusals = 0;
  for (let turn = 0; turn < 4; turn++) {
    for (const name of asked) {
      for (const value of ["a", "b"]) {
        const decision = await limiter.check({ [name]: value }, { cost: turn === 3 ? 5 : 1 });
        if (decision.allowed) continue;
        refusals++;
        const { headers, body } = answerOf(decision);
        const text = refusalText(decision);
        expect(Object.fromEntries(text.fields)).toEqual(headers);
        expect(text.body).toBe(JSON.stringify(body));
      }
    }
  }
  expect(refusals).toBeGreaterThan(30);
  await limiter.close();
});

test("an edited limit is reported as it is now", async () => {
  const limiter = createLimiter({ rules: [rule] });
  for (const limit of [1, 2, 3]) {
    limiter.setRules([{ ...rule, limit }]);
    const decision = await limiter.check({ user: "a" }, { cost: 4 });
    expect(refusalText(decision).body).toBe(JSON.stringify(answerOf(decision).body));
    expect(Object.fromEntries(refusalText(decision).fields)["RateLimit-Policy"]).toBe(`"r";q=${limit};w=60`);
  }
  await limiter.close();
});

test("a limit moved by adapt is reported as it is now, and an earlier refusal as it was", async () => {
  vi.useFakeTimers({ toFake: ["setInterval"] });
  const adapt = { signal: "reported", target: 0.8, min: 1, max: 200 } as const;
  const limiter = createLimiter({ rules: [{ ...rule, limit: 100, adapt } as Rule] });
  const policyField = (decision: Decision): string | undefined =>
    Object.fromEntries(refusalText(decision).fields)["RateLimit-Policy"];
  const before = await limiter.check({ user: "a" }, { cost: 101 });
  expect(policyField(before)).toBe('"r";q=100;w=60');
  await limiter.reportUtilisation(1, { source: "db" });
  await vi.advanceTimersByTimeAsync(1_000);
  vi.useRealTimers();
  expect(policyField(await limiter.check({ user: "a" }, { cost: 101 }))).toBe('"r";q=70;w=60');
  expect(policyField(before)).toBe('"r";q=100;w=60');
  await limiter.close();
});
