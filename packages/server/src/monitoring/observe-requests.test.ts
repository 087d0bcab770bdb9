import type { Decision } from "sluice";
import { expect, test } from "vitest";
import { observeRequests } from "./observe-requests.js";
import type { RequestCounts, Transport } from "./request-counts.js";

const decision = (delayMs: number): Decision => ({ allowed: true, checks: [{}], delayMs }) as unknown as Decision;

test.each([
  ["forward-auth", 0],
  ["proxy", 0],
  ["http", 60_000],
] as const)("%s: a wait that the transport itself waited is no latency", (transport, leastMs) => {
  const latencies: number[] = [];
  const requests = { add: (_: Transport, __: unknown, ms: number) => latencies.push(ms) } as unknown as RequestCounts;
  const arrival = { sinceMs: performance.now() - 60_000, traceparent: undefined };
  observeRequests({ requests, trace: undefined })(transport).decided(decision(60_000), arrival);
  expect(latencies[0]!).toBeGreaterThanOrEqual(leastMs);
  expect(latencies[0]!).toBeLessThan(leastMs + 30_000);
});
