import { expect, test } from "vitest";
import { carried, timeIn, timeQuery, withTime } from "./time-address.js";

test("a range is carried to other pages, unless their URL has one", () => {
  expect(carried("/rules", "?range=6h&user=ann&zone=UTC")).toBe("/rules?range=6h&zone=UTC");
  expect(carried("/rules?tag=a#x", "?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z")).toBe(
    "/rules?tag=a&from=2026-01-01T00%3A00%3A00Z&to=2026-01-02T00%3A00%3A00Z#x",
  );
  expect(carried("/?range=1h", "?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z")).toBe("/?range=1h");
  expect(carried("/rules", "")).toBe("/rules");
});

test("a URL without a valid time shows the page's default", () => {
  expect(timeIn("", "live")).toEqual({ range: "live" });
  expect(timeIn("?range=9y", "1h")).toEqual({ range: "1h" });
  expect(timeIn("?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "1h")).toEqual({ range: "1h" });
});

test("a selected time replaces the previous one, and keeps the rest of the URL", () => {
  const custom = { range: "custom", fromMs: 1_000, toMs: 61_499 } as const;
  const search = withTime("range=6h&compare=day", custom);
  expect(Object.fromEntries(new URLSearchParams(search))).toEqual({
    compare: "day",
    from: "1970-01-01T00:00:01Z",
    to: "1970-01-01T00:01:01Z",
  });
  expect(withTime(search, { range: "1d" })).toBe("compare=day&range=1d");
  expect(timeQuery(custom, 1_000)).toEqual({ from: 0, to: 60_499 });
});
