/** Processes race for units of the same keys, fetched ahead, on a real Redis. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, expect, test as vitest } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { leashProcess } from "../harness/leash.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const test = vitest.skipIf(whyMissing("redis"));

const PROCESSES = 4;
const RUN_MS = 2_000;
const racer = fileURLToPath(new URL("prefetch-racer.mjs", import.meta.url));

let redis: RedisServer;
beforeAll(async () => {
  if (whyMissing("redis")) return;
  redis = await startRedis();
});
afterAll(async () => {
  await redis?.stop();
});

interface Result {
  readonly admitted: Record<string, [number, number][]>;
  readonly inProcess: number;
}

async function race(rules: readonly Rule[]): Promise<Result[]> {
  const told = JSON.stringify({ url: redis.url, rules, runMs: RUN_MS });
  const racers = Array.from({ length: PROCESSES }, () => {
    const child = spawn(process.execPath, [racer, told], { stdio: ["pipe", "pipe", "inherit"] });
    leashProcess(child);
    let printed = "";
    const ready = once(child.stdout, "data");
    child.stdout.on("data", (chunk) => {
      printed += chunk;
    });
    return { child, ready, closed: once(child, "close"), result: () => printed.slice("ready\n".length) };
  });
  await Promise.all(racers.map(({ ready, closed }) => Promise.race([ready, closed])));
  for (const { child } of racers) child.stdin.write("start");
  const statuses = await Promise.all(racers.map(({ closed }) => closed));
  expect(statuses.map(([status]) => status)).toEqual(racers.map(() => 0));
  return racers.map(({ result }) => JSON.parse(result()) as Result);
}

function racing(numbers: Record<string, unknown>[]): Rule[] {
  return numbers.map(
    (own) => ({ key: ["user"], match: { only: own.id }, prefetch: "50ms", ...own }) as unknown as Rule,
  );
}

/**
 * Redis's scripts read whole milliseconds: an admission at 1000.9 ms leaves a window of 300 ms at 1300.0 ms, after 299.1 ms. Clocks finer
 * than that must allow for it.
 */
const STORE_CLOCK_MS = 1;

/** The most admissions that certainly lay in one window, by a clock without steps. */
function mostInWindow(spans: readonly [number, number][], windowMs: number): number {
  const byEnd = [...spans].sort((a, b) => a[1] - b[1]);
  let most = 0;
  for (let last = 0; last < byEnd.length; last++) {
    const fromMs = byEnd[last]![1] - windowMs;
    let within = 0;
    for (let i = last; i >= 0 && byEnd[i]![1] > fromMs; i--) if (byEnd[i]![0] > fromMs) within++;
    most = Math.max(most, within);
  }
  return most;
}

test("no window holds more than the limit, however many processes use units that they fetched ahead", async () => {
  const rules = racing([
    { id: "packed", algorithm: "rolling-window", limit: 150, window: "300ms" },
    { id: "sorted-set", algorithm: "rolling-window", limit: 150, window: "300ms", storage: "sorted-set" },
  ]);
  const results = await race(rules);
  for (const { id } of rules) {
    const spans = results.flatMap(({ admitted }) => admitted[id]!);
    expect(spans.length).toBeGreaterThan(150);
    expect(mostInWindow(spans, 300 - STORE_CLOCK_MS)).toBeLessThanOrEqual(150);
  }
  const inProcess = results.reduce((sum, result) => sum + result.inProcess, 0);
  console.log(`prefetch race: ${inProcess} decisions in process`);
  expect(inProcess).toBeGreaterThan(0);
}, 60_000);

test("what all processes used and left is never more than the limit", async () => {
  const rules = racing([
    { id: "token-bucket", algorithm: "token-bucket", limit: 1_500, window: "365d" },
    { id: "gcra", algorithm: "gcra", limit: 1_500, window: "365d" },
    { id: "fixed-window", algorithm: "fixed-window", limit: 1_500, window: "365d" },
    { id: "sorted", algorithm: "rolling-window", limit: 1_500, window: "365d", storage: "sorted-set" },
    { id: "ring", algorithm: "rolling-window", limit: 1_500, window: "365d" },
  ]);
  const results = await race(rules);
  const limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 30_000 }), rules });
  for (const { id } of rules) {
    const used = results.reduce((sum, { admitted }) => sum + admitted[id]!.length, 0);
    const left = (await limiter.peek({ only: id, user: "u" })).remaining!;
    // Units that ended because their process was held up are charged and unused; none may come twice.
    expect(used + left).toBeLessThanOrEqual(1_500);
    console.log(`prefetch race: ${id} ${used} used, ${left} left of 1500`);
  }
  await limiter.close();
}, 60_000);
