import type { DecidedRequest, Decision } from "sluice";
import { expect, test } from "vitest";
import { LeaseCounts } from "./lease-counts.js";

const request = { checks: [{ key: "jobs:c" }] } as unknown as DecidedRequest;
const grantTo = (counts: LeaseCounts, id: string): void =>
  counts.granted(
    { lease: { id, expiresAfterMs: 3_600_000 }, checks: [{ rule: "jobs" }] } as unknown as Decision,
    request,
  );

function msOf(work: () => void): number {
  const sinceMs = performance.now();
  work();
  return performance.now() - sinceMs;
}

test("a full table counts no more leases, and does not hold up the requests that get one", () => {
  const counts = new LeaseCounts();
  const fillMs = msOf(() => {
    for (let i = 0; i < 100_000; i++) grantTo(counts, `held-${i}`);
  });
  const moreMs = msOf(() => {
    for (let i = 0; i < 5_000; i++) grantTo(counts, `more-${i}`);
  });
  expect(counts.read().get("jobs")).toBe(100_000);
  // A twentieth as many; looking at every lease for each of them takes some ten times as long.
  expect(moreMs).toBeLessThan(2 * fillMs);
});
