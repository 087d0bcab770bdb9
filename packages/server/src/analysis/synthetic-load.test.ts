import { expect, test } from "vitest";
import { edgeBursts } from "./synthetic-load.js";

test("the full limit arrives just before each edge and again just after it, in order", () => {
  const load = [...edgeBursts({ limit: 10, windowMs: 1_000, windows: 3 })];
  expect(load.length).toBe(60);
  const times = load.map(({ atMs }) => atMs - Date.UTC(2026, 0, 1));
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(times.filter((atMs) => atMs >= 980 && atMs < 1_000).length).toBe(10);
  expect(times.filter((atMs) => atMs >= 1_000 && atMs < 1_020).length).toBe(10);
});
