import { expect, test } from "vitest";
import type { SluiceError } from "../errors.js";
import { checkEstimate } from "./check-estimate.js";
import { parseRules } from "./validate-rules.js";

const rule = {
  id: "tokens",
  key: ["org"],
  algorithm: "token-bucket",
  limit: 100,
  window: "1m",
  cost: { attribute: "t" },
  estimate: { default: 10 },
};
const mistakesIn = (changed: object): string[] => {
  try {
    parseRules({ rules: [{ ...rule, ...changed }] });
    return [];
  } catch (error) {
    return (error as SluiceError).mistakes.map(({ path, message }) => `${path}: ${message}`);
  }
};

test("a rule with an estimate is valid under every algorithm that counts units", () => {
  for (const algorithm of ["token-bucket", "gcra", "fixed-window", "sliding-counter", "rolling-window"]) {
    expect(mistakesIn({ algorithm })).toEqual([]);
  }
  expect(mistakesIn({ estimate: { default: 1, attribute: "max", quantile: 0.5, ttl: "1d", overrun: "stop" } })).toEqual(
    [],
  );
});

test.each([
  [{ cost: 1 }, "rules[0].cost: expected {attribute: name} beside estimate"],
  [{ cost: undefined }, "rules[0].cost: expected {attribute: name} beside estimate"],
  [
    { estimate: { default: 1, attribute: "t" } },
    "rules[0].estimate.attribute: expected another attribute than the cost's",
  ],
  [{ estimate: {} }, "rules[0].estimate.default: expected a whole number from 1"],
  [{ estimate: { default: 0 } }, "rules[0].estimate.default: expected a whole number from 1"],
  [{ estimate: { default: 1, quantile: 1 } }, "rules[0].estimate.quantile: expected a number from 0.01 to 0.999"],
  [{ estimate: { default: 1, ttl: "2d" } }, 'rules[0].estimate.ttl: expected a duration from "1s" to "1d"'],
  [{ estimate: { default: 1, overrun: "cut" } }, 'rules[0].estimate.overrun: expected one of "finish", "stop"'],
  [{ estimate: { default: 1, extra: 1 } }, "rules[0].estimate.extra: unknown"],
  [{ prefetch: "20ms" }, "rules[0].prefetch: expected either estimate or prefetch, got both"],
  [{ candidate: { prefetch: "20ms" } }, "rules[0].candidate.prefetch: expected either estimate or prefetch"],
  [
    { overrides: [{ match: { org: "a" }, prefetch: "20ms" }] },
    "rules[0].overrides[0].prefetch: expected either estimate",
  ],
  [
    { variants: [{ name: "x", weight: 1, algorithm: "concurrency" }] },
    "rules[0].variants[0].algorithm: expected an algorithm that counts units beside estimate",
  ],
  [{ algorithm: "concurrency", window: undefined }, "rules[0].estimate: concurrency has no estimate"],
])("%j is a mistake with its path", (changed, expected) => {
  expect(mistakesIn(changed).join("\n")).toContain(expected);
});

test("what the field table refuses is not reported again", () => {
  const found: string[] = [];
  for (const estimate of [undefined, null, 7, "x", []])
    checkEstimate({ ...rule, estimate }, "r", (path) => found.push(path));
  checkEstimate({ ...rule, variants: 7, overrides: [null], candidate: "x" }, "r", (path) => found.push(path));
  expect(found).toEqual([]);
});
