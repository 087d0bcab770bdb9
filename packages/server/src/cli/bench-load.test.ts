import { expect, test } from "vitest";
import { type LoadPlan, type LoadRun, runLoad } from "./bench-load.js";

/** One connection, on a clock that advances only by waits and responses. */
async function run(
  plan: Partial<LoadPlan>,
  tookMs: (n: number) => number,
  { stopAt = Number.POSITIVE_INFINITY, startMs = 1_000 } = {},
): Promise<LoadRun & { latencies: number[] }> {
  let nowMs = startMs;
  const latencies: number[] = [];
  const stop = new AbortController();
  const whole = { connections: 1, requests: Number.POSITIVE_INFINITY, durationMs: Number.POSITIVE_INFINITY, ...plan };
  const ran = await runLoad(whole, {
    clock: {
      now: () => nowMs,
      async until(atMs) {
        nowMs = Math.max(nowMs, atMs);
      },
    },
    async send(n, dueMs) {
      nowMs += tookMs(n);
      latencies[n] = nowMs - dueMs;
      if (n === stopAt) stop.abort();
    },
    stop: stop.signal,
  });
  return { ...ran, latencies };
}

const unsentOf = ({ unsent }: LoadRun): number => unsent.reduce((sum, { times }) => sum + times, 0);

test("open loop: requests that a stall delays are measured from when they were due", async () => {
  const { latencies, ended, elapsedMs } = await run({ requests: 6, rate: 100 }, (n) => (n === 0 ? 35 : 1));
  expect(latencies).toEqual([35, 26, 17, 8, 1, 1]);
  expect([ended, elapsedMs]).toEqual(["requests", 51]);
});

test("closed loop: the same stall shows in a single request", async () => {
  const { latencies, unsent } = await run({ requests: 6 }, (n) => (n === 0 ? 35 : 1));
  expect(latencies).toEqual([35, 1, 1, 1, 1, 1]);
  expect(unsent).toEqual([]);
});

test("open loop: requests that were due and never sent are reported with their waiting time", async () => {
  const ran = await run({ durationMs: 100, rate: 100 }, (n) => (n === 5 ? 1_000 : 1));
  expect(ran.latencies).toHaveLength(6);
  expect(ran.ended).toBe("duration");
  expect(ran.unsent).toEqual([40, 30, 20, 10].map((waitedMs) => ({ waitedMs, times: 1 })));
});

test("a backlog of millions is described in a thousand steps that add up", async () => {
  const ran = await run({ durationMs: 60_000, rate: 100_000 }, () => 60_000);
  expect(ran.unsent).toHaveLength(1_000);
  expect(unsentOf(ran)).toBe(60 * 100_000 - 1);
});

test("sent and unsent add up to rate times duration, whatever the clock's start value", async () => {
  for (let i = 0; i < 100; i++) {
    const ran = await run({ durationMs: 4_000, rate: 500 }, () => 37, { startMs: (317.123_456_789 * (i + 1)) / 7 });
    expect([i, ran.latencies.length + unsentOf(ran)]).toEqual([i, 2_000]);
  }
});

test("a count and a duration each end the load", async () => {
  const byCount = await run({ requests: 3, durationMs: 100 }, () => 1);
  expect([byCount.ended, byCount.latencies.length]).toEqual(["requests", 3]);
  const byTime = await run({ requests: 1_000, durationMs: 100 }, () => 10);
  expect([byTime.ended, byTime.latencies.length]).toEqual(["duration", 10]);
});

test("a stop ends the load, and requests not yet due do not count as unsent", async () => {
  const closed = await run({ requests: 100 }, () => 1, { stopAt: 4 });
  expect([closed.ended, closed.latencies.length]).toEqual(["stopped", 5]);
  const open = await run({ requests: 100, rate: 100 }, () => 1, { stopAt: 4 });
  expect([open.ended, open.latencies.length, unsentOf(open)]).toEqual(["stopped", 5, 0]);
});
