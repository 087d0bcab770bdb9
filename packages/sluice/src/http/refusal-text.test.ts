import { expect, test } from "vitest";
import { Decision } from "../limiter/decision.js";
import { createLimiter } from "../limiter/limiter.js";
import type { Rule } from "../rules/rule.js";
import { answerOf } from "./answer.js";
import { refusalText } from "./refusal-text.js";

const rule: Rule = { id: "r", key: ["user"], algorithm: "rolling-window", limit: 1, window: "1m" };

test("is what a refusal's answer says, whatever was spelled before", async () => {
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

test("a limit that was edited is told as it stands", async () => {
  const limiter = createLimiter({ rules: [rule] });
  for (const limit of [1, 2, 3]) {
    limiter.setRules([{ ...rule, limit }]);
    const decision = await limiter.check({ user: "a" }, { cost: 4 });
    expect(refusalText(decision).body).toBe(JSON.stringify(answerOf(decision).body));
    expect(Object.fromEntries(refusalText(decision).fields)["RateLimit-Policy"]).toBe(`"r";q=${limit};w=60`);
  }
  await limiter.close();
});

test("a limit that moved under its plan, as by adapt, is told as it stands", async () => {
  const limiter = createLimiter({ rules: [rule] });
  const policyField = (decision: Decision): string | undefined =>
    Object.fromEntries(refusalText(decision).fields)["RateLimit-Policy"];
  const decision = await limiter.check({ user: "a" }, { cost: 4 });
  expect(policyField(decision)).toBe('"r";q=1;w=60');
  const plan = Decision.originOf(decision).checks[0]!.plan as { policy: object };
  plan.policy = { ...plan.policy, limit: 7 };
  expect(policyField(decision)).toBe('"r";q=7;w=60');
  await limiter.close();
});
