import { expect, test } from "vitest";
import { verdict } from "../algorithms/model.js";
import type { Check } from "../check.js";
import { asCharges, refusingNothing } from "./charges.js";

const check = (stored: string, cost: number): Check =>
  ({ cost, plan: { policy: { stored, limit: 10 } } }) as unknown as Check;

test("checks become charges, and places are only looked at", () => {
  expect(asCharges([check("token-bucket", 3), check("concurrency", 2)])).toMatchObject([
    { cost: 3, charge: true },
    { cost: 0 },
  ]);
  expect(asCharges([check("concurrency", 2)])[0]).not.toHaveProperty("charge");
});

test("a charge's verdicts pass, and keep the state of the counters", () => {
  const refused = verdict(false, -4, 900, 1_000, "limit");
  const reply = refusingNothing({ nowMs: 1, verdicts: [refused], guarantee: "atomic" });
  expect(reply.verdicts[0]).toMatchObject({ allowed: true, remaining: -4, retryAfterMs: 0, resetAfterMs: 1_000 });
  expect(reply.verdicts[0]!.reason).toBeUndefined();
});
