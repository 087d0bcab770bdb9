import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { holdUntilEnd } from "../middleware/hold-until-end.js";
import { Lease } from "./lease.js";
import { createLimiter } from "./limiter.js";

test("a holder considers its lease lost before the store gives the place to another, even if its clock is slow by 500 ppm", () => {
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

test("a term of a year is renewed as often as a timer allows, not every millisecond", async () => {
  const limiter = createLimiter({
    rules: [{ id: "jobs", key: [], algorithm: "concurrency", limit: 1, ttl: "365d" }],
  });
  let renewals = 0;
  const { renew } = Lease.prototype;
  Lease.prototype.renew = function (this: Lease) {
    renewals++;
    return renew.call(this);
  };
  try {
    const end = holdUntilEnd(await limiter.check({}), {
      limiter,
      skipSuccessful: false,
      skipFailed: false,
      settle: undefined,
    });
    await sleep(20);
    end!({ isWhole: true, status: 200 });
  } finally {
    Lease.prototype.renew = renew;
    await limiter.close();
  }
  expect(renewals).toBe(0);
});
