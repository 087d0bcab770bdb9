import fc from "fast-check";
import { expect, test } from "vitest";
import { formatDuration, LONGEST_DURATION_MS, parseDuration } from "./duration.js";

test.each([
  ["1ms", 1],
  ["250ms", 250],
  ["90s", 90_000],
  ["1.5s", 1500],
  ["0.001s", 1],
  ["1.1m", 66_000],
  ["5m", 300_000],
  ["1h", 3_600_000],
  ["30d", 2_592_000_000],
  ["3650d", LONGEST_DURATION_MS],
])("%s is %i ms", (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each([
  "",
  "0s",
  "-5",
  "-5s",
  "5",
  "s",
  "5 s",
  " 5s",
  "5S",
  "1e3s",
  "1.5ms",
  "0.0001s",
  ".5s",
  "5.s",
  "3651d",
  "999999999999999d",
  "9".repeat(1000),
  "1w",
  "month",
  30,
  null,
  undefined,
])("%j is not a duration", (text) => {
  expect(parseDuration(text)).toBeUndefined();
});

test("a formatted duration reads back as itself", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: LONGEST_DURATION_MS }), (ms) => parseDuration(formatDuration(ms)) === ms),
  );
  expect(formatDuration(90_000)).toBe("90s");
  expect(formatDuration(86_400_000)).toBe("1d");
  expect(formatDuration(1500)).toBe("1500ms");
});
