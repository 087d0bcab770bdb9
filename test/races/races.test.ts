/** Forty processes race for one key on a real Redis. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Rule } from "sluice";
import { afterAll, beforeAll, expect, test as vitest } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { leashProcess } from "../harness/leash.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const test = vitest.skipIf(whyMissing("redis"));

const PROCESSES = 40;
const ATTEMPTS = 12;
const racer = fileURLToPath(new URL("racer.mjs", import.meta.url));

/** Starts one; `ready` resolves when it waits for the start, `end` lets it run and resolves with what it prints. */
function startRacer(told: string): { ready: Promise<unknown>; end: () => Promise<string> } {
  const child = spawn(process.execPath, [racer, told], { stdio: ["pipe", "pipe", "inherit"] });
  leashProcess(child);
  let printed = "";
  const ready = once(child.stdout, "data");
  child.stdout.on("data", (chunk) => {
    printed += chunk;
  });
  const closed = once(child, "close");
  return {
    // A process that ends before it is ready must fail the test, not hang it.
    ready: Promise.race([ready, closed.then(([status]) => Promise.reject(new Error(`a racer ended with ${status}`)))]),
    async end() {
      child.stdin.write("start");
      const [status] = await closed;
      expect(status).toBe(0);
      return printed.slice("ready\n".length);
    },
  };
}

let redis: RedisServer;
beforeAll(async () => {
  if (whyMissing("redis")) return;
  redis = await startRedis();
});
afterAll(async () => {
  await redis?.stop();
});

const exact: Rule[] = [
  { id: "token-bucket", algorithm: "token-bucket", limit: 10, window: "365d" },
  { id: "gcra", algorithm: "gcra", limit: 10, window: "365d" },
  { id: "fixed-window", algorithm: "fixed-window", limit: 10, window: "365d" },
  { id: "sorted-set", algorithm: "rolling-window", limit: 10, window: "365d", storage: "sorted-set" },
  { id: "packed", algorithm: "rolling-window", limit: 10, window: "365d", storage: "packed" },
  { id: "concurrency", algorithm: "concurrency", limit: 10, ttl: "365d" },
].map((rule) => ({ ...rule, key: ["user"], match: { race: "count", only: rule.id } }) as Rule);
const leases: Rule = {
  id: "leases",
  key: ["user"],
  match: { race: "leases" },
  algorithm: "concurrency",
  limit: 10,
  ttl: "1m",
};

test("40 processes racing for 10 places get exactly 10, for every exact algorithm, and leases never exceed their limit", async () => {
  const told = JSON.stringify({ url: redis.url, rules: [...exact, leases], attempts: ATTEMPTS });
  const racers = Array.from({ length: PROCESSES }, () => startRacer(told));
  await Promise.all(racers.map(({ ready }) => ready));
  const printed = await Promise.all(racers.map(({ end }) => end()));
  const results = printed.map(
    (text) => JSON.parse(text) as { admitted: Record<string, number>; held: [number, number][] },
  );

  const admitted = Object.fromEntries(
    exact.map(({ id }) => [id, results.reduce((sum, result) => sum + result.admitted[id]!, 0)]),
  );
  expect(admitted).toEqual(Object.fromEntries(exact.map(({ id }) => [id, 10])));

  const held = results.flatMap((result) => result.held);
  const edges = held.flatMap(([from, to]) => [
    { at: from, change: 1 },
    { at: to, change: -1 },
  ]);
  edges.sort((a, b) => a.at - b.at || a.change - b.change);
  let now = 0;
  let most = 0;
  for (const { change } of edges) {
    now += change;
    most = Math.max(most, now);
  }
  console.log(`races: ${PROCESSES} processes, ${held.length} leases held, at most ${most} at once of 10`);
  expect(most).toBeLessThanOrEqual(10);
  // A race that nobody runs proves nothing: more leases were taken than there are places, and some were held together.
  expect(held.length).toBeGreaterThan(20);
  expect(most).toBeGreaterThan(1);
}, 300_000);
