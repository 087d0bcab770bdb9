/** What no single field shows; validate-rules.test.ts covers whole documents. */
import { expect, test } from "vitest";
import { runAtOnce } from "../time-slices.js";
import { Findings } from "./findings.js";
import { findingInconsistencies } from "./rule-consistency.js";
import { parseRules } from "./validate-rules.js";

function mistakesOf(...rules: unknown[]): string[] {
  const findings = new Findings();
  runAtOnce(findingInconsistencies(rules, findings));
  return findings.list().map(({ path, message }) => `${path}: ${message}`);
}

const rule = { id: "r", key: ["user"], algorithm: "rolling-window", limit: 10, window: "1m" };

test("a consistent rule has no mistakes", () => {
  expect(mistakesOf(rule, { ...rule, id: "s", minInterval: "1s" })).toEqual([]);
});

test("an id that is used twice is reported at its second place, with the first", () => {
  expect(mistakesOf(rule, rule)).toEqual(['rules[1].id: expected a unique id, got "r", which rules[0] has']);
});

test("a key names each attribute once", () => {
  expect(mistakesOf({ ...rule, key: ["user", "user"] })[0]).toMatch(
    /^rules\[0\]\.key\[1\]: expected each attribute once/,
  );
});

test.each([
  [{ minInterval: "2m" }, "minInterval"],
  [{ algorithm: "token-bucket", minInterval: "1s" }, "minInterval"],
  [{ variants: [{ name: "a", weight: 0 }] }, "variants"],
  [{ algorithm: "concurrency", window: "1m" }, "window"],
  [{ algorithm: "fixed-window", window: "day" }, "window"],
  [{ window: undefined }, "window"],
])("%j contradicts itself in %s", (more, field) => {
  expect(mistakesOf({ ...rule, ...more }).join("\n")).toContain(field);
});

test("what the field table refuses is skipped, because it has been reported", () => {
  expect(
    mistakesOf(7, { ...rule, key: "user" }, { ...rule, id: "s", variants: [{ name: "a", weight: "much" }] }),
  ).toEqual([]);
});

test.each([
  [{ prefetch: "20ms" }, "rules[0].maxWait: expected either maxWait or prefetch"],
  [
    { algorithm: "fixed-window", align: "calendar", window: "1d" },
    "rules[0].maxWait: expected either maxWait or align: calendar",
  ],
  [
    { estimate: { quantile: 0.9 }, cost: { attribute: "tokens" } },
    "rules[0].maxWait: expected either estimate or maxWait",
  ],
  [{ maxWait: "2h" }, 'rules[0].maxWait: expected a duration of at most "1h"'],
  [{ algorithm: "sliding-counter" }, "rules[0].maxWait: sliding-counter has no maxWait"],
  [{ algorithm: "concurrency", window: undefined }, "rules[0].maxWait: concurrency has no maxWait"],
])("maxWait beside %j is a mistake", (more, message) => {
  const rule = { id: "r", key: [], algorithm: "gcra", limit: 100, window: "1s", maxWait: "2s", ...more };
  expect(() => parseRules([rule as never])).toThrow(message);
});

test.each([
  [{ limit: 10 }, "rules[0].limit: expected a limit from 20 to 200 (adapt), got 10"],
  [
    { adapt: { signal: "reported", target: 0.8, min: 300, max: 200 } },
    "rules[0].adapt.min: expected at most max (200), got 300",
  ],
  [{ prefetch: "20ms" }, "rules[0].adapt: expected either adapt or prefetch"],
  [{ adapt: { signal: "inflight", target: 0.8, min: 20, max: 200 } }, "rules[0].adapt.signal: expected"],
  [
    { adapt: { signal: "reported", target: 0, min: 20, max: 200 } },
    "rules[0].adapt.target: expected a utilisation above 0",
  ],
  [
    { adapt: { signal: "reported", target: 0.8, min: 20, max: 9_000_000 }, algorithm: "rolling-window" },
    "rules[0].adapt.max",
  ],
  [{ algorithm: "load-shedding", window: undefined, signal: "reported" }, "rules[0].adapt: load-shedding has no adapt"],
])("adapt beside %j is a mistake", (more, message) => {
  const adapt = { signal: "reported", target: 0.8, min: 20, max: 200 };
  const adaptive = { id: "r", key: [], algorithm: "gcra", limit: 100, window: "1s", adapt, ...more };
  expect(() => parseRules([adaptive as never])).toThrow(message);
});
