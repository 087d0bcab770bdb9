import { expect, test, vi } from "vitest";
import { Lease } from "./lease.js";

test("a holder takes its lease for lost before the store gives the place to another, on a clock that is slow by 500 ppm", () => {
  vi.useFakeTimers();
  try {
    const lease = new Lease({
      id: "x",
      expiresAfterMs: 30_000,
      sinceMonotonicMs: performance.now(),
      keeper: { release: () => true, renew: () => 30_000 },
    });
    const { signal } = lease;
    vi.advanceTimersByTime(29_969);
    expect(signal.aborted).toBe(false);
    // 30 s of the store are so many ms of this clock.
    vi.advanceTimersByTime(30_000 * (1 - 500e-6) - 29_969);
    expect(signal.aborted).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});
