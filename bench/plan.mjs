/**
 * What `sluice plan --measure` says of Redis's processor time, beside what a load of its own then takes: six workloads, in one run.
 *   npm run build && node bench/plan.mjs
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";
import { drive, median } from "./measure.mjs";
import { startRedis } from "./redis-server.mjs";
import { printBars } from "./report.mjs";

const bin = fileURLToPath(new URL("../packages/server/bin/sluice.js", import.meta.url));
const MOST_OFF = 0.25;
const ROUNDS = 3;
const KEYS = 5_000;
const log = (more) => ({ id: "log", key: ["user"], algorithm: "rolling-window", limit: 100, window: "1h", ...more });

const workloads = {
  "token bucket": [{ id: "bucket", key: ["user"], algorithm: "token-bucket", limit: 1_000, window: "1m" }],
  "fixed window": [{ id: "fixed", key: ["user"], algorithm: "fixed-window", limit: 1_000, window: "1m" }],
  "packed log": [log()],
  "short sorted set": [log({ storage: "sorted-set" })],
  "long sorted set": [log({ storage: "sorted-set", limit: 500 })],
  "three rules": [
    { id: "gcra", key: ["user"], algorithm: "gcra", limit: 10, window: "1m" },
    { id: "sliding", key: ["user"], algorithm: "sliding-counter", limit: 1_000, window: "1h" },
    log({ limit: 50, window: "1d" }),
  ],
};

async function planned(rules, url, folder) {
  const file = join(folder, "rules.json");
  await writeFile(file, JSON.stringify({ rules }));
  const args = [
    "plan",
    "--rules",
    file,
    "--keys",
    String(KEYS),
    "--rate",
    "5000",
    "--measure",
    "--store",
    url,
    "--json",
  ];
  const { stdout } = await promisify(execFile)(process.execPath, [bin, ...args]);
  return JSON.parse(stdout).cpu.microseconds;
}

/** Requests as a service would send them: refusals are remembered, so that limits are not reached here. */
async function taken(rules, redis) {
  await redis.admin.flushall();
  const store = redisStore(redis.url, { deadlineMs: 10_000 });
  const limiter = createLimiter({ store, rules });
  await limiter.ready();
  const ask = (n) => limiter.check({ user: `user-${String(n % KEYS).padStart(15, "0")}` });
  await drive({ count: KEYS, inFlight: 64 }, ask);
  const { redisUs } = await drive({ count: 8 * KEYS, inFlight: 64, redis }, ask);
  await limiter.close();
  return redisUs;
}

export async function planSection() {
  const folder = await mkdtemp(join(tmpdir(), "sluice-bench-plan-"));
  const redis = await startRedis();
  try {
    const rows = [];
    for (const [name, rules] of Object.entries(workloads)) {
      const foretold = [];
      const used = [];
      for (let round = 0; round < ROUNDS; round++) {
        foretold.push(await planned(rules, redis.url, folder));
        used.push(await taken(rules, redis));
      }
      rows.push({ name, plannedUs: median(foretold), takenUs: median(used) });
    }
    return rows;
  } finally {
    await redis.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

export function printPlan(rows) {
  console.log("\n`sluice plan --measure`: Redis's processor time for a request, foretold and taken");
  for (const { name, plannedUs, takenUs } of rows) {
    const ratio = (plannedUs / takenUs).toFixed(2);
    console.log(`  ${name.padEnd(18)} ${plannedUs.toFixed(1)} us foretold, ${takenUs.toFixed(1)} taken: ${ratio}`);
  }
}

export function planBars(rows) {
  return rows.map(({ name, plannedUs, takenUs }) => {
    const off = Math.abs(plannedUs / takenUs - 1);
    return {
      what: `plan's processor time, ${name}: how far off`,
      wanted: `at most ${MOST_OFF}`,
      measured: off,
      met: off <= MOST_OFF,
    };
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const rows = await planSection();
  printPlan(rows);
  printBars(planBars(rows));
}
