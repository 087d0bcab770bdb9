import type { DecidedRequest, Decision } from "sluice";
import { afterEach, expect, test, vi } from "vitest";
import { LeaseCounts } from "./lease-counts.js";

afterEach(() => void vi.restoreAllMocks());

const request = { checks: [{ key: "jobs:c" }] } as unknown as DecidedRequest;
const grantTo = (counts: LeaseCounts, id: string): void =>
  counts.granted(
    { lease: { id, expiresAfterMs: 3_600_000 }, checks: [{ rule: "jobs" }] } as unknown as Decision,
    request,
  );

test("a full table counts no more leases, and is swept for expired ones at most once a second", () => {
  const counts = new LeaseCounts();
  let nowMs = 1_000;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  for (let i = 0; i < 100_000; i++) grantTo(counts, `held-${i}`);
  // A sweep iterates over the whole table.
  const looks = vi.spyOn(Map.prototype, Symbol.iterator);
  for (let i = 0; i < 5_000; i++) grantTo(counts, `more-${i}`);
  expect(looks).toHaveBeenCalledTimes(1);
  nowMs += 1_000;
  for (let i = 0; i < 5_000; i++) grantTo(counts, `later-${i}`);
  expect(looks).toHaveBeenCalledTimes(2);
  vi.restoreAllMocks();
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  expect(counts.read().get("jobs")).toBe(100_000);
});
