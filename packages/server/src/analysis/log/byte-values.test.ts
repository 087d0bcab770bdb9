import { expect, test } from "vitest";
import { addressEnd, decimalIn, epochIn, LastTime } from "./byte-values.js";
import { withoutPort } from "./log-request.js";
import { parseEpoch, parseIsoTime } from "./log-time.js";

const read = <T>(text: string, of: (bytes: Buffer, from: number, end: number) => T): T =>
  of(Buffer.from(`<${text}>`), 1, text.length + 1);

test("plain decimals give the nearest number; everything else is NaN", () => {
  for (const text of [
    "0",
    "7",
    "0.1",
    "0.125",
    "123456.789",
    "9007199254740991",
    "9007199254740945",
    "0.00000000000001",
  ])
    expect(read(text, decimalIn)).toBe(Number(text));
  for (const text of ["", ".5", "5.", "1.2.3", "-1", "+1", "1e3", "0x10", " 1", "9007199254740993", "1".repeat(17)])
    expect(read(text, decimalIn)).toBeNaN();
});

test("seconds and ms since the epoch", () => {
  for (const text of ["1795000000.123", "1795000000", "1795000000250", "1795000000250.5"])
    expect(read(text, epochIn)).toBe(parseEpoch(text));
  for (const text of ["12345678", "1795000000.", "1795000000x", "-1795000000", "000000000"])
    expect(read(text, epochIn)).toBeNaN();
});

test("an address ends before its port; anything else with a colon or a bracket is left to the text reader", () => {
  for (const text of ["10.0.0.1:443", "10.0.0.1", "localhost", "1.2.3", "10.0.0.1:0"])
    expect(text.slice(0, read(text, addressEnd) - 1)).toBe(withoutPort(text));
  for (const text of ["::1", "[::1]:443", "1.2.3.4:", ":80", "1.2.3:80", "1..3.4:80", "1.2.3.4:80:80", "1.2.3.4:8a"])
    expect(read(text, addressEnd)).toBe(-1);
});

test("a time that differs from the last only in its fraction is not parsed again", () => {
  let parsed = 0;
  const time = new LastTime((text) => {
    parsed++;
    return parseIsoTime(text);
  });
  const at = (text: string): number => read(text, (bytes, from, end) => time.read(bytes, from, end));
  const second = Date.UTC(2026, 10, 16, 7);
  expect(at("2026-11-16T07:00:00.123Z")).toBe(second + 123);
  expect(at("2026-11-16T07:00:00.999Z")).toBe(second + 999);
  expect(at("2026-11-16T07:00:00.000Z")).toBe(second);
  expect(parsed).toBe(1);
  expect(at("2026-11-16T07:00:01.000Z")).toBe(second + 1_000);
  expect(at("2026-11-16T07:00:01.0x0Z")).toBeNaN();
  expect(at("2026-11-16T07:00:01.000Z")).toBe(second + 1_000);
  expect(parsed).toBe(4);
});
