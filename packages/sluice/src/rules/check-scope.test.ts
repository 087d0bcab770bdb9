import { expect, test } from "vitest";
import type { SluiceError } from "../errors.js";
import { parseRules } from "./validate-rules.js";

const RULE = { id: "r", key: ["user"], scope: "global", algorithm: "rolling-window", limit: 10, window: "1m" };

function mistakesOf(more: Record<string, unknown>): readonly string[] {
  try {
    parseRules([{ ...RULE, ...more }]);
    return [];
  } catch (error) {
    return (error as SluiceError).mistakes.map(({ path, message }) => `${path}: ${message}`);
  }
}

test("rules whose units can be held may be global", () => {
  for (const algorithm of ["rolling-window", "token-bucket", "gcra", "fixed-window"]) {
    expect(mistakesOf({ algorithm })).toEqual([]);
  }
  expect(mistakesOf({ prefetch: "20ms" })).toEqual([]);
  expect(mistakesOf({ algorithm: "fixed-window", window: "day", align: "calendar" })).toEqual([]);
});

test.each([
  [{ scope: "world" }, "rules[0].scope: expected"],
  [
    { algorithm: "sliding-counter" },
    "rules[0].scope: expected scope: region, got global: sliding-counter has no units",
  ],
  [{ algorithm: "concurrency", window: undefined }, "rules[0].scope: expected scope: region, got global: concurrency"],
  [{ minInterval: "1s" }, "rules[0].minInterval: expected either minInterval or scope: global"],
  [{ blockFor: "1h" }, "rules[0].blockFor: expected either blockFor or scope: global"],
  [{ window: "500ms" }, 'rules[0].window: expected a window of at least 1s where scope is global, got "500ms"'],
  [{ algorithm: "gcra", burst: 1, window: "5s" }, "rules[0].window: expected a bucket that takes at least 1s to fill"],
  [{ candidate: { algorithm: "sliding-counter" } }, "rules[0].candidate"],
])("%o is a mistake", (more, expected) => {
  const [first] = mistakesOf(more);
  expect(first?.startsWith(expected)).toBe(true);
});
