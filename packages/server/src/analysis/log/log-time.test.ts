import { expect, test } from "vitest";
import { parseAnyTime, parseEpoch, parseIsoTime, parseLocalTime, rememberLast } from "./log-time.js";

test("times with their zones", () => {
  expect(parseLocalTime("10/Oct/2026:13:55:36 -0700")).toBe(Date.UTC(2026, 9, 10, 20, 55, 36));
  expect(parseLocalTime("01/Jan/2026:00:00:00 +0530")).toBe(Date.UTC(2025, 11, 31, 18, 30));
  expect(parseIsoTime("2026-10-10T13:55:36.5+02:00")).toBe(Date.UTC(2026, 9, 10, 11, 55, 36, 500));
  expect(parseIsoTime("2026-10-10T13:55:36")).toBe(Date.UTC(2026, 9, 10, 13, 55, 36));
});

test("the unit of an epoch, s, ms, us or ns, follows from its magnitude", () => {
  for (const value of [1_795_000_000, 1_795_000_000_000, "1795000000.000", "1795000000000000", "1795000000000000000"]) {
    expect(parseEpoch(value)).toBe(1_795_000_000_000);
  }
});

test.each([
  "",
  "yesterday",
  "10/Foo/2026:13:55:36 -0700",
  "10/Oct/2026 13:55",
  "12",
  "-5",
  "9e99",
  "2026-13-45T99:99:99Z",
])("%j is no time", (text) => {
  expect(parseAnyTime(text)).toBeUndefined();
});

test("a repeated text is parsed once", () => {
  let calls = 0;
  const parse = rememberLast((text) => {
    calls++;
    return text.length;
  });
  expect(["aa", "aa", "b", "aa"].map(parse)).toEqual([2, 2, 1, 2]);
  expect(calls).toBe(3);
});
