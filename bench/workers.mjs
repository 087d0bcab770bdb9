/**
 * Several processes on one Redis: what they decide together, and how evenly. Each has one connection and 64 checks in flight, on
 * keys that all of them share.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";
import { median } from "./measure.mjs";

const KEYS = 10_000;

/** @param {{ url: string, admin: any }} redis @param {{ quick: boolean, repetitions: number }} options */
export async function workersSection(redis, { quick, repetitions }) {
  const runMs = quick ? 500 : 1_500;
  const rows = [];
  for (const count of [1, 2, 4]) {
    const workers = await Promise.all(Array.from({ length: count }, () => startWorker(redis.url)));
    const runs = [];
    for (let i = 0; i < repetitions; i++) {
      await redis.admin.flushall();
      runs.push(await Promise.all(workers.map((worker) => worker.run(runMs))));
    }
    for (const worker of workers) worker.stop();
    const totals = runs.map((shares) => shares.reduce((sum, share) => sum + share, 0));
    const fairness = runs.map((shares) => Math.min(...shares) / Math.max(...shares));
    rows.push({ workers: count, perSecond: (median(totals) / runMs) * 1_000, leastToMost: median(fairness) });
  }
  return rows;
}

export function printWorkers(rows) {
  console.log("\nProcesses that share one Redis: rolling window (exact), uniform keys, 64 in flight each");
  for (const { workers, perSecond, leastToMost } of rows) {
    const total = Math.round(perSecond).toLocaleString("en-US").padStart(10);
    console.log(
      `  ${workers} ${total} decisions a second; the slowest made ${leastToMost.toFixed(2)} of the fastest's`,
    );
  }
}

async function startWorker(url) {
  const child = fork(fileURLToPath(import.meta.url), [url]);
  await once(child, "message");
  return {
    /** How many decisions it made. */
    async run(runMs) {
      child.send(runMs);
      const [made] = await once(child, "message");
      return made;
    },
    stop: () => child.disconnect(),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const rule = { id: "r", key: ["user"], algorithm: "rolling-window", limit: 100, window: "1m" };
  const limiter = createLimiter({ store: redisStore(process.argv[2], { deadlineMs: 10_000 }), rules: [rule] });
  await limiter.ready();
  process.on("message", async (runMs) => {
    const endsAtMs = performance.now() + runMs;
    let made = 0;
    const one = async () => {
      while (performance.now() < endsAtMs) await limiter.check({ user: `user-${(made++ * 7919) % KEYS}` });
    };
    await Promise.all(Array.from({ length: 64 }, one));
    process.send(made);
  });
  process.on("disconnect", () => process.exit());
  process.send("ready");
}
