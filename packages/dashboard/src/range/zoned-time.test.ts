import { expect, test } from "vitest";
import { instantsOf, zoned } from "./zoned-time.js";

const spell = (text: string, zone: string) => instantsOf(text, zone).map((ms) => new Date(ms).toISOString());

test("a time is interpreted in its zone", () => {
  expect(spell("2026-01-02T10:00:00", "Asia/Kathmandu")).toEqual(["2026-01-02T04:15:00.000Z"]);
  expect(zoned(Date.parse("2026-01-02T04:15:00Z"), "Asia/Kathmandu")).toBe("2026-01-02T10:00:00");
});

test("an hour that occurs twice is two instants, a skipped one is none", () => {
  expect(spell("2026-10-25T02:30:00", "Europe/Berlin")).toEqual([
    "2026-10-25T00:30:00.000Z",
    "2026-10-25T01:30:00.000Z",
  ]);
  expect(spell("2026-03-29T02:30:00", "Europe/Berlin")).toEqual([]);
  // Half an hour, in the southern hemisphere.
  expect(spell("2026-04-05T01:45:00", "Australia/Lord_Howe")).toHaveLength(2);
  expect(spell("2026-10-04T02:15:00", "Australia/Lord_Howe")).toEqual([]);
});

test.each(["", "x", "0002-11-10T00:00:00", "0202-11-10T00:00:00", "275760-09-13T00:00:00", "2026-13-01T00:00:00"])(
  "partial input is no time, and does not throw: %j",
  (text) => {
    for (const zone of ["UTC", "Europe/Berlin", "America/New_York"]) expect(instantsOf(text, zone)).toEqual([]);
  },
);

test("every hour of two years in many zones survives the round trip", () => {
  const misread: string[] = [];
  for (const zone of [
    "UTC",
    "Europe/Berlin",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "Australia/Lord_Howe",
    "Asia/Tehran",
  ]) {
    for (let at = Date.UTC(2025, 0, 1); at < Date.UTC(2027, 0, 1); at += 3_600_000)
      if (!instantsOf(zoned(at, zone), zone).includes(at)) misread.push(`${zone} ${at}`);
  }
  expect(misread).toEqual([]);
});
