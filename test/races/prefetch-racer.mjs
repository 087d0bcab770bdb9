/**
 * One of several processes that use units of the same keys, fetched ahead. Its argument holds the Redis URL, the rules, and how long it
 * asks. It writes a line when it is ready, and starts when its standard input says so. Prints, by rule, the spans in which its requests
 * were admitted: of a decision in this process one instant, of the store's from the request to the answer.
 */
import { once } from "node:events";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";

const { url, rules, runMs } = JSON.parse(process.argv[2] ?? "");
const limiter = createLimiter({ store: redisStore(url, { deadlineMs: 30_000 }), rules });
while (!(await limiter.ready())) await new Promise((resolve) => setTimeout(resolve, 50));
process.stdout.write("ready\n");
await once(process.stdin, "data");
process.stdin.destroy();

const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6;
/** @type {Record<string, [number, number][]>} */
const admitted = {};
for (const { id } of rules) admitted[id] = [];
let inProcess = 0;

/** @param {string} only */
async function ask(only) {
  const fromMs = monotonicMs();
  const made = limiter.checkNow({ only, user: "u" });
  // Between the two readings, not before: the units may have ended since the first.
  const atMs = monotonicMs();
  const decision = await made;
  if (decision.degraded) throw new Error(`degraded: ${decision.degraded}`);
  if (!decision.allowed) return;
  if (decision.guarantee === "prefetched") inProcess++;
  admitted[only]?.push(made instanceof Promise ? [fromMs, monotonicMs()] : [fromMs, atMs]);
}

const startMs = monotonicMs();
const pending = [];
while (monotonicMs() - startMs < runMs) {
  for (const { id } of rules) for (let i = 0; i < 5; i++) pending.push(ask(id));
  await new Promise((resolve) => setTimeout(resolve, 2));
}
await Promise.all(pending);
await limiter.close();
process.stdout.write(JSON.stringify({ admitted, inProcess }));
