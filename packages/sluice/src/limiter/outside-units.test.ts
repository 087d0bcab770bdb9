import { expect, test } from "vitest";
import type { Rule } from "../rules/rule.js";
import { createLimiter, outsideUnits } from "./limiter.js";
import { mostUnits, unitsPerMs } from "./outside-units.js";

const minute: Rule = { id: "r", key: ["user"], algorithm: "rolling-window", limit: 60, window: "1m", prefetch: "10s" };

function held(rule: Rule) {
  const limiter = createLimiter({ rules: [rule] });
  const units = outsideUnits(limiter);
  return { limiter, units, check: units.checks({ user: "u" })[0]! };
}

test("units that are fetched from outside are not there for checks; what is settled is counted, the rest comes back", async () => {
  const { limiter, units, check } = held(minute);
  const first = await units.fetch(check, { holder: "h", seq: 1, used: 0, held: 0, want: 20 });
  expect(first.grant).toMatchObject({ units: 20, kept: 0, lifeMs: 10_000 });
  expect((await limiter.peek({ user: "u" })).remaining).toBe(40);
  await units.fetch(check, { holder: "h", seq: 2, used: 5, held: 3, want: 0 });
  expect((await limiter.peek({ user: "u" })).remaining).toBe(52);
  await limiter.close();
});

test("a charge from outside is counted in full, past the limit", async () => {
  const { limiter, units, check } = held(minute);
  await units.charge([{ ...check, cost: 70 }]);
  expect(await limiter.peek({ user: "u" })).toMatchObject({ allowed: false });
  await limiter.close();
});

test("a counter's capacity and its long-run rate", () => {
  expect([mostUnits(held(minute).check), unitsPerMs(held(minute).check)]).toEqual([60, 0.001]);
  const bucket = held({ id: "b", key: ["user"], algorithm: "gcra", limit: 60, window: "1m", burst: 30 } as Rule).check;
  expect([mostUnits(bucket), unitsPerMs(bucket)]).toEqual([30, 0.001]);
});
