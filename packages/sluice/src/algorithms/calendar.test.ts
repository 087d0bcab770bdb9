import { expect, test } from "vitest";
import { boundariesAround, type Calendar } from "./calendar.js";

const utc = (text: string): number => Date.parse(text);
const around = (calendar: Calendar, at: string): string[] =>
  boundariesAround(calendar, utc(at)).map((ms) => new Date(ms).toISOString().slice(0, 16));

test("days begin at local midnight, in the zone's own offset", () => {
  expect(around({ unit: "day", timezone: "Asia/Kolkata" }, "2026-01-15T20:00Z")).toEqual([
    "2026-01-14T18:30",
    "2026-01-15T18:30",
    "2026-01-16T18:30",
    "2026-01-17T18:30",
    "2026-01-18T18:30",
  ]);
});

test("a day in which clocks go forward has 23 hours, and one in which they go back 25", () => {
  const hours = (at: string): number => {
    const [, start, end] = boundariesAround({ unit: "day", timezone: "Europe/Paris" }, utc(at));
    return (end - start) / 3_600_000;
  };
  expect([hours("2026-03-29T12:00Z"), hours("2026-10-25T12:00Z"), hours("2026-06-01T12:00Z")]).toEqual([23, 25, 24]);
});

test("a day whose midnight does not exist begins when the gap ends", () => {
  // Cuba puts its clocks forward at midnight.
  const [, start] = boundariesAround({ unit: "day", timezone: "America/Havana" }, utc("2026-03-08T12:00Z"));
  expect(new Date(start).toISOString()).toBe("2026-03-08T05:00:00.000Z");
});

test("weeks begin on Monday, also for an instant on a Sunday", () => {
  expect(around({ unit: "week", timezone: "UTC" }, "2026-01-18T23:59Z").slice(1, 3)).toEqual([
    "2026-01-12T00:00",
    "2026-01-19T00:00",
  ]);
});

test("months carry over the turn of the year", () => {
  expect(around({ unit: "month", timezone: "UTC" }, "2026-12-31T10:00Z")).toEqual([
    "2026-11-01T00:00",
    "2026-12-01T00:00",
    "2027-01-01T00:00",
    "2027-02-01T00:00",
    "2027-03-01T00:00",
  ]);
});
