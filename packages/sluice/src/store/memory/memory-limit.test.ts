import { expect, test } from "vitest";
import { MemoryLimit, type MemoryUse } from "./memory-limit.js";

const use = (idle: number): MemoryUse => ({
  bytes: 1,
  maxBytes: 1,
  counters: 1,
  ids: 0,
  evicted: { idle, usedUp: 0, ids: 0 },
});

test("an episode is reported once, and the next only after a quiet minute", () => {
  const reports: number[] = [];
  const limit = new MemoryLimit(1, ({ evicted }) => reports.push(evicted.idle));
  limit.watch(use(0));
  for (const evicted of [5, 6, 6, 7]) limit.watch(use(evicted));
  expect(reports).toEqual([5]);
  for (let look = 0; look < 59; look++) limit.watch(use(7));
  limit.watch(use(8));
  expect(reports).toEqual([5]);
  for (let look = 0; look < 60; look++) limit.watch(use(8));
  limit.watch(use(9));
  expect(reports).toEqual([5, 9]);
});
