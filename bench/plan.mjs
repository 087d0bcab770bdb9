/**
 * The processor time of Redis that `sluice plan --measure` foretells, beside what the load that was planned for then takes: six workloads, in
 * turn in one run. A workload holds so many units a key while it is timed, and the plan is asked for the rate at which keys hold as many.
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
const TIMED_A_KEY = 8;
const log = (more) => ({ id: "log", key: ["user"], algorithm: "rolling-window", limit: 100, window: "1h", ...more });

/** `held`: units a key in the middle of the timed part. `windowSeconds`: of the rule whose keys hold them. */
const workloads = {
  "token bucket": {
    rules: [{ id: "bucket", key: ["user"], algorithm: "token-bucket", limit: 1_000, window: "1m" }],
    held: 50,
    windowSeconds: 60,
  },
  "fixed window": {
    rules: [{ id: "fixed", key: ["user"], algorithm: "fixed-window", limit: 1_000, window: "1m" }],
    held: 50,
    windowSeconds: 60,
  },
  "packed log": { rules: [log()], held: 50, windowSeconds: 3_600 },
  "short sorted set": { rules: [log({ storage: "sorted-set" })], held: 50, windowSeconds: 3_600 },
  "long sorted set": { rules: [log({ storage: "sorted-set", limit: 500 })], held: 300, windowSeconds: 3_600 },
  "three rules": {
    rules: [
      { id: "gcra", key: ["user"], algorithm: "gcra", limit: 1_000, window: "1d" },
      { id: "sliding", key: ["user"], algorithm: "sliding-counter", limit: 1_000, window: "1d" },
      log({ window: "1d" }),
    ],
    held: 50,
    windowSeconds: 86_400,
  },
};

async function planned({ rules, held, windowSeconds }, url, folder) {
  const file = join(folder, "rules.json");
  await writeFile(file, JSON.stringify({ rules }));
  const args = [
    "plan",
    "--rules",
    file,
    "--keys",
    String(KEYS),
    "--rate",
    String(Math.max(1, Math.round((KEYS * held) / windowSeconds))),
    "--measure",
    "--store",
    url,
    "--json",
  ];
  const { stdout } = await promisify(execFile)(process.execPath, [bin, ...args]);
  return JSON.parse(stdout).cpu.microseconds;
}

/** Requests as a service would send them, all of which pass: refusals are remembered by the instances. */
async function taken({ rules, held }, redis) {
  await redis.admin.flushall();
  const store = redisStore(redis.url, { deadlineMs: 10_000 });
  const limiter = createLimiter({ store, rules });
  await limiter.ready();
  const attributesAt = (n) => ({ user: `user-${String(n % KEYS).padStart(15, "0")}` });
  const cost = held - TIMED_A_KEY / 2;
  await drive({ count: KEYS, inFlight: 64 }, (n) => limiter.charge(attributesAt(n), { cost }));
  let refused = 0;
  const ask = async (n) => {
    if (!(await limiter.check(attributesAt(n))).allowed) refused++;
  };
  // In slices, of which the median counts, as the plan measures: what falls into one of them does not decide.
  const slices = [];
  for (let slice = 0; slice < TIMED_A_KEY; slice++) {
    const { redisUs } = await drive({ count: KEYS, inFlight: 64, redis }, ask);
    slices.push(redisUs);
  }
  await limiter.close();
  if (refused > 0) throw new Error(`expected requests that pass, got ${refused} refusals`);
  return median(slices);
}

export async function planSection() {
  const folder = await mkdtemp(join(tmpdir(), "sluice-bench-plan-"));
  const redis = await startRedis();
  try {
    const rows = [];
    for (const [name, workload] of Object.entries(workloads)) {
      const foretold = [];
      const used = [];
      for (let round = 0; round < ROUNDS; round++) {
        foretold.push(await planned(workload, redis.url, folder));
        used.push(await taken(workload, redis));
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
