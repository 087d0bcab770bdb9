import { expect, test } from "vitest";
import { readQuotas, readRetryAfterMs } from "./rate-limit-signals.js";

const NOW_MS = Date.UTC(2026, 0, 1);
const quotas = (headers: Record<string, string>) => readQuotas(new Headers(headers), NOW_MS);

test.each([
  ["120", 120_000],
  ["0", 0],
  [new Date(NOW_MS + 5000).toUTCString(), 5000],
  [new Date(NOW_MS - 5000).toUTCString(), 0],
  ["soon", undefined],
  ["-5", undefined],
  ["1.5", undefined],
  ["99999999999999999999", 3650 * 86_400_000],
])("Retry-After: %s", (text, expected) => {
  expect(readRetryAfterMs(new Headers({ "retry-after": text }), NOW_MS)).toBe(expected);
});

test("draft 8 to 11: policies by name, with their state merged in", () => {
  expect(
    quotas({
      "ratelimit-policy": '"burst";q=100;w=60, "da,ily";q=1000;w=86400;qu="requests";pk=:cHNkZg==:',
      ratelimit: '"burst";r=50;t=30',
    }),
  ).toEqual([
    { name: "burst", quota: 100, windowMs: 60_000, remaining: 50, resetAfterMs: 30_000 },
    { name: "da,ily", quota: 1000, windowMs: 86_400_000 },
  ]);
});

test("draft 8 with spaces, as sent by express-rate-limit", () => {
  expect(
    quotas({ "ratelimit-policy": '"5-in-1min"; q=5; w=60; pk=:YWJj:', ratelimit: '"5-in-1min"; r=4; t=60' }),
  ).toEqual([{ name: "5-in-1min", quota: 5, windowMs: 60_000, remaining: 4, resetAfterMs: 60_000 }]);
});

test("draft 7: one state, its window from the policy of the same limit", () => {
  expect(quotas({ "ratelimit-policy": "10;w=1, 100;w=60", ratelimit: "limit=100, remaining=50, reset=30" })).toEqual([
    { name: "", quota: 100, windowMs: 60_000, remaining: 50, resetAfterMs: 30_000 },
  ]);
});

test("draft 6 and the legacy fields, with a reset from now, or since 1970 in seconds or milliseconds", () => {
  const expected = [{ name: "", quota: 100, remaining: 0, resetAfterMs: 30_000 }];
  expect(quotas({ "ratelimit-limit": "100", "ratelimit-remaining": "0", "ratelimit-reset": "30" })).toEqual(expected);
  expect(quotas({ "x-ratelimit-limit": "100", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "30" })).toEqual(
    expected,
  );
  for (const epoch of [NOW_MS / 1000 + 30, NOW_MS + 30_000].map(String)) {
    expect(quotas({ "x-ratelimit-limit": "100", "x-ratelimit-remaining": "0", "x-ratelimit-reset": epoch })).toEqual(
      expected,
    );
  }
});

test("unreadable values count as absent", () => {
  expect(quotas({})).toEqual([]);
  expect(quotas({ ratelimit: "nonsense" })).toEqual([{ name: "" }]);
  expect(quotas({ ratelimit: '"x";r=many;t=' })).toEqual([{ name: "x" }]);
  expect(quotas({ ratelimit: '"unclosed' })).toEqual([]);
  expect(quotas({ "x-ratelimit-remaining": "-1" })).toEqual([{ name: "" }]);
});
