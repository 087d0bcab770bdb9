import { expect, test } from "vitest";
import { concurrency } from "../../algorithms/concurrency.js";
import { fixedWindow } from "../../algorithms/fixed-window.js";
import { rollingWindow } from "../../algorithms/rolling-window.js";
import type { Check } from "../../check.js";
import { counterBytes, recordBytes, sizedPart } from "./memory-bytes.js";

test("a key counts with its real length, twice that beyond Latin-1", () => {
  const state = fixedWindow.fresh();
  expect(counterBytes("k".repeat(100), state) - counterBytes("", state)).toBe(100);
  expect(counterBytes("\u4e00".repeat(100), state) - counterBytes("", state)).toBe(200);
});

test("rings and leases count with their size", () => {
  const ring = { ...rollingWindow.fresh(), ring: new Float64Array(1_000) };
  expect(counterBytes("", ring) - counterBytes("", rollingWindow.fresh())).toBe(8_000);
  const leases = concurrency.fresh();
  const emptyBytes = counterBytes("", leases);
  leases.leases.set("a", { endsAtMs: 1, places: 1, ttlMs: 1 });
  expect(counterBytes("", leases)).toBeGreaterThan(emptyBytes);
});

test("a record counts its id and each of its checks", () => {
  const check = { key: "k".repeat(50) } as Check;
  expect(recordBytes("i".repeat(30), []) - recordBytes("", [])).toBe(30);
  expect(recordBytes("", [check, check]) - recordBytes("", [check])).toBe(
    recordBytes("", [check]) - recordBytes("", []),
  );
});

test("the sized part changes exactly where a counter's size can", () => {
  const ring = rollingWindow.fresh();
  expect(sizedPart("rolling-window-packed", ring)).toBe(ring.ring);
  const leases = concurrency.fresh();
  expect(sizedPart("concurrency", leases)).toBe(0);
  expect(sizedPart("fixed-window", fixedWindow.fresh())).toBeUndefined();
});
