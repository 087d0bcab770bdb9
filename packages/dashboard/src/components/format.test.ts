import { expect, test } from "vitest";
import {
  axisRate,
  bytes,
  count,
  milliseconds,
  rate,
  share,
  shortCount,
  span,
  visible,
  wait,
  withUnit,
} from "./format.js";

test("a positive share never rounds to zero, nor a partial one to 100 %", () => {
  expect([0, 0.0001, 0.034, 0.5, 0.9995, 1].map(share)).toEqual(["0 %", "<0.1 %", "3.4 %", "50 %", ">99.9 %", "100 %"]);
});

test("waits are rounded up, and an endless one is never", () => {
  expect([0, 1, 1_400, 119_001, 121_000, 7_300_000, 2_147_483_647, 30 * 86_400_000].map(wait)).toEqual([
    "0 ms",
    "1 ms",
    "1.4 s",
    "120 s",
    "3 min",
    "3 h",
    "never",
    // The rest of a month is no "never".
    "720 h",
  ]);
});

test("counts are written in full, and small rates keep a digit", () => {
  expect([count(99_999), count(1_234_567), rate(0.42), rate(0), rate(42.4)]).toEqual([
    "99,999",
    "1,234,567",
    "0.4",
    "0",
    "42",
  ]);
});

test("large numbers become short on an axis", () => {
  expect([shortCount(99_999), shortCount(1_234_567), axisRate(0.42), axisRate(123_456)]).toEqual([
    "99,999",
    "1.2M",
    "0.4/s",
    "123.5K/s",
  ]);
});

test("sizes and spans use the largest unit that fits", () => {
  expect([bytes(0), bytes(1023), bytes(1536), bytes(5 * 2 ** 30)]).toEqual(["0 B", "1023 B", "1.5 KiB", "5 GiB"]);
  expect([span(-5), span(59_999), span(61_000), span(90_000_000)]).toEqual(["0 s", "59 s", "1 min", "1 d"]);
  expect([milliseconds(0.123), milliseconds(12.6), milliseconds(1_234)]).toEqual(["0.12 ms", "13 ms", "1.2 s"]);
});

test("a number has its rule's unit; money and sizes have their own format", () => {
  expect([
    withUnit(1_234, undefined),
    withUnit(1_234, "tokens"),
    withUnit(2_048, "bytes"),
    withUnit(20_000_000, "microdollars"),
    withUnit(1_234, "microdollars"),
  ]).toEqual(["1,234", "1,234 tokens", "2 KiB", "$20.00", "$0.0012"]);
});

test("invisible and bidirectional characters are escaped", () => {
  expect(visible("gift\u202egpj.exe a\u0000b \u200bé漢 \ud83d\ude00")).toBe(
    "gift\\u202egpj.exe a\\u0000b \\u200bé漢 😀",
  );
  // Unicode tags are invisible and take two code units; a lone surrogate is no character.
  expect(visible("a\u{e0041} \u009b \ud83d")).toBe("a\\udb40\\udc41 \\u009b \\ud83d");
});
