/**
 * One of many processes that race for the same keys. Its argument holds the Redis URL, the rules, and the attempts per rule. It writes a line when
 * it is ready, and starts when its standard input says so: all start together however slowly the machine starts them.
 * Prints how many each rule admitted, and when it held leases, on the machine's monotonic clock.
 */
import { once } from "node:events";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";

const { url, rules, attempts } = JSON.parse(process.argv[2] ?? "");
const limiter = createLimiter({ store: redisStore(url, { deadlineMs: 30_000 }), rules });
// On a machine that starts forty processes at once, a connection may take longer than a deadline.
while (!(await limiter.ready())) await new Promise((resolve) => setTimeout(resolve, 50));
process.stdout.write("ready\n");
await once(process.stdin, "data");
process.stdin.destroy();

const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6;
/** @type {Record<string, number>} */
const admitted = {};
/** @type {[number, number][]} */
const held = [];
for (const { id, match } of rules) {
  if (match.race !== "count") continue;
  const decisions = await Promise.all(
    Array.from({ length: attempts }, () => limiter.check({ race: "count", only: id, user: "u" })),
  );
  for (const { degraded } of decisions) if (degraded) throw new Error(`degraded: ${degraded}`);
  admitted[id] = decisions.filter(({ allowed }) => allowed).length;
}
for (let i = 0; i < attempts; i++) {
  const decision = await limiter.check({ race: "leases", user: "u" });
  if (decision.degraded) throw new Error(`degraded: ${decision.degraded}`);
  if (!decision.allowed) continue;
  // Held for certain from the answer's arrival until the release is sent.
  const fromMs = monotonicMs();
  await new Promise((resolve) => setTimeout(resolve, 10 + Math.random() * 20));
  held.push([fromMs, monotonicMs()]);
  await decision.lease?.release();
}
process.stdout.write(JSON.stringify({ admitted, held }));
await limiter.close();
