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

test("a lease whose first term is nearly over for a retry is renewed as often as its new term needs", async () => {
  vi.useFakeTimers();
  try {
    let renewals = 0;
    const renew = (): number => {
      renewals++;
      return 30_000;
    };
    const keeper = { release: () => true, renew };
    const lease = new Lease({ id: "x", expiresAfterMs: 0, sinceMonotonicMs: performance.now(), keeper });
    const stop = Lease.keep(lease);
    await vi.advanceTimersByTimeAsync(9_000);
    expect(renewals).toBe(1);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(renewals).toBe(2);
    stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(renewals).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});
