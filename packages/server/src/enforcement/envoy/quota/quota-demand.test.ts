import { createLimiter, type Rule } from "sluice";
import { outsideUnits } from "sluice/internal";
import { expect, test } from "vitest";
import { QuotaDemand } from "./quota-demand.js";

const minute: Rule = { id: "r", key: [], algorithm: "rolling-window", limit: 600, window: "1m", prefetch: "10s" };
const checksOf = (...rules: Rule[]) => outsideUnits(createLimiter({ rules })).checks({});

test("a new Envoy gets the rule's even share of a term", () => {
  const demand = new QuotaDemand();
  demand.report(1, 0);
  expect(demand.wanted(checksOf(minute))).toBe(100);
});

test("later it gets what was asked for since the last report, denied requests included, and a quarter more", () => {
  const demand = new QuotaDemand();
  demand.report(1, 0);
  demand.report(200, 5_000);
  expect(demand.wanted(checksOf(minute))).toBe(251);
});

test("demand that has ended decays to an eighth of the even share", () => {
  const demand = new QuotaDemand();
  demand.report(1, 0);
  demand.report(200, 5_000);
  demand.report(0, 10_000);
  expect(demand.wanted(checksOf(minute))).toBe(126);
  for (let i = 3; i < 20; i++) demand.report(0, i * 5_000);
  expect(demand.wanted(checksOf(minute))).toBe(13);
});

test("demand is at least one and at most what the tightest rule can grant", () => {
  const demand = new QuotaDemand();
  demand.report(1, 0);
  demand.report(1_000_000, 5_000);
  expect(demand.wanted(checksOf(minute))).toBe(600);
  expect(demand.wanted(checksOf(minute, { ...minute, id: "s", limit: 60 }))).toBe(60);
  expect(demand.wanted(checksOf({ ...minute, cost: 7 }))).toBe(85);
  const bucket: Rule = { id: "b", key: [], algorithm: "token-bucket", limit: 500, window: "1m", prefetch: "10s" };
  expect(demand.wanted(checksOf(bucket))).toBe(500);
  expect(new QuotaDemand().wanted(checksOf({ ...minute, limit: 1 }))).toBe(1);
});
