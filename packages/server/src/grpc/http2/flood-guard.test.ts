import { expect, test } from "vitest";
import { FloodGuard } from "./flood-guard.js";

function takenUntilFlood(guard: FloodGuard): number {
  let taken = 0;
  while (guard.take()) taken++;
  return taken;
}

test("a burst of two thousand frames is no flood, nor are a hundred per second after it", () => {
  let nowMs = 0;
  const guard = new FloodGuard(() => nowMs);
  expect(takenUntilFlood(guard)).toBe(2_000);
  nowMs += 1_000;
  expect(takenUntilFlood(guard)).toBe(100);
  nowMs += 3_600_000;
  expect(takenUntilFlood(guard)).toBe(2_000);
});

test("a client whose calls are answered may reset as many as it likes", () => {
  const guard = new FloodGuard(() => 0);
  let floods = 0;
  for (let i = 0; i < 100_000; i++) {
    guard.decided();
    if (!guard.take()) floods++;
  }
  expect(floods).toBe(0);
});
