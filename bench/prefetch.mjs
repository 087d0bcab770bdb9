/**
 * Units fetched ahead: what a check costs in one process against the memory store and against the same rule without prefetch, how many
 * store calls several processes make on one hot key, and how long a check takes at a steady pace.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";
import { drive, interleaved, median } from "./measure.mjs";

const PROCESSES = 8;
const ASKED_PER_SECOND = 100_000;
const STEADY_PER_SECOND = 2_000;
const PREFETCH = { prefetch: "20ms" };
const hot = { id: "hot", key: ["user"], algorithm: "rolling-window", limit: 1_000_000, window: "1s" };

const ours = (url, rule) => createLimiter({ store: redisStore(url, { deadlineMs: 10_000 }), rules: [rule] });

/** @param {{ url: string, admin: any, evalshaCalls(): Promise<number> }} redis @param {{ quick: boolean, repetitions: number }} options */
export async function prefetchSection(redis, { quick, repetitions }) {
  const load = { count: quick ? 100_000 : 400_000, inFlight: 256 };
  const onRedis = (rule) => async () => {
    await redis.admin.flushall();
    const limiter = ours(redis.url, rule);
    await limiter.ready();
    const figures = await drive(load, () => limiter.check({ user: "u" }));
    await limiter.close();
    return figures;
  };
  const speed = await interleaved(
    {
      "memory store": async () => {
        const limiter = createLimiter({ rules: [hot] });
        const figures = await drive(load, () => limiter.check({ user: "u" }));
        await limiter.close();
        return figures;
      },
      "Redis, without prefetch": onRedis(hot),
      "Redis, prefetch: 20ms": onRedis({ ...hot, ...PREFETCH }),
    },
    repetitions,
  );
  const steadyMs = quick ? 2_000 : 5_000;
  const steady = await interleaved(
    {
      "Redis, without prefetch": () => steadily(redis, hot, steadyMs),
      "Redis, prefetch: 20ms": () => steadily(redis, { ...hot, ...PREFETCH }, steadyMs),
    },
    repetitions,
  );
  return { speed, steady, fleet: await fleet(redis, quick ? 2_000 : 5_000) };
}

/** One process at a steady pace: how long its checks take. */
async function steadily(redis, rule, runMs) {
  await redis.admin.flushall();
  const limiter = ours(redis.url, rule);
  await limiter.ready();
  const latencies = [];
  await pace(STEADY_PER_SECOND, runMs, async () => {
    const sentMs = performance.now();
    await limiter.check({ user: "u" });
    latencies.push((performance.now() - sentMs) * 1_000);
  });
  await limiter.close();
  latencies.sort((a, b) => a - b);
  return { p50Us: median(latencies), p99Us: latencies[Math.floor(latencies.length * 0.99)] ?? 0 };
}

/** Asks as often as the time that has passed says; a late timer catches up. */
async function pace(perSecond, runMs, ask) {
  const startMs = performance.now();
  const pending = [];
  let asked = 0;
  for (let elapsedMs = 0; elapsedMs < runMs; elapsedMs = performance.now() - startMs) {
    const due = Math.floor((elapsedMs / 1_000) * perSecond);
    while (asked < due) {
      asked++;
      pending.push(ask());
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(pending);
  return asked;
}

/** Processes on one hot key: store calls a request. */
async function fleet(redis, runMs) {
  const workers = await Promise.all(
    Array.from({ length: PROCESSES }, async () => {
      const child = fork(fileURLToPath(import.meta.url), [redis.url, String(runMs)]);
      await once(child, "message");
      return child;
    }),
  );
  await redis.admin.flushall();
  await redis.admin.config("RESETSTAT");
  const ran = await Promise.all(
    workers.map(async (child) => {
      child.send("start");
      const [told] = await once(child, "message");
      return told;
    }),
  );
  const calls = await redis.evalshaCalls();
  const asked = ran.reduce((sum, told) => sum + told.asked, 0);
  const inProcess = ran.reduce((sum, told) => sum + told.decided, 0);
  return {
    processes: PROCESSES,
    askedPerSecond: (asked / runMs) * 1_000,
    callsPerRequest: calls / asked,
    shareInProcess: inProcess / asked,
  };
}

export function prefetchBars({ speed, steady, fleet: { callsPerRequest } }) {
  const { perSecond } = speed["Redis, prefetch: 20ms"];
  const againstMemory = perSecond / speed["memory store"].perSecond;
  const againstPlain = perSecond / speed["Redis, without prefetch"].perSecond;
  const p99 = steady["Redis, prefetch: 20ms"].p99Us / steady["Redis, without prefetch"].p99Us;
  return [
    {
      what: "prefetch: decisions a second against the memory store",
      wanted: "at least 0.7",
      measured: againstMemory,
      met: againstMemory >= 0.7,
    },
    {
      what: "prefetch: decisions a second against the same rule without it",
      wanted: "at least 2.5",
      measured: againstPlain,
      met: againstPlain >= 2.5,
    },
    {
      what: "prefetch: store calls a request, 8 processes on one hot key",
      wanted: "at most 0.03",
      measured: callsPerRequest,
      met: callsPerRequest <= 0.03,
    },
    {
      what: "prefetch: p99 of a check against the same rule without it, 2000 a second",
      wanted: "at most 0.5",
      measured: p99,
      met: p99 <= 0.5,
    },
  ];
}

export function printPrefetch({ speed, steady, fleet: figures }) {
  const rounded = (number) => Math.round(number).toLocaleString("en-US").padStart(10);
  console.log("\nPrefetch: one hot key, 256 in flight (decisions a second); 2000 a second (p50, p99 in us)");
  for (const [name, { perSecond }] of Object.entries(speed)) console.log(`  ${name.padEnd(26)}${rounded(perSecond)}`);
  for (const [name, { p50Us, p99Us }] of Object.entries(steady)) {
    console.log(`  ${name.padEnd(26)}${rounded(p50Us)}${rounded(p99Us)}`);
  }
  const { processes, askedPerSecond, callsPerRequest, shareInProcess } = figures;
  console.log(
    `  ${processes} processes, ${Math.round(askedPerSecond).toLocaleString("en-US")} a second asked: ` +
      `${callsPerRequest.toFixed(4)} store calls a request, ${(shareInProcess * 100).toFixed(1)} % decided in process`,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const limiter = ours(process.argv[2], { ...hot, limit: ASKED_PER_SECOND, ...PREFETCH });
  await limiter.ready();
  process.send?.("ready");
  await once(process, "message");
  const asked = await pace(ASKED_PER_SECOND / PROCESSES, Number(process.argv[3]), () => limiter.check({ user: "u" }));
  const { decided } = limiter.prefetchStats();
  await limiter.close();
  process.send?.({ asked, decided });
}
