/**
 * One hot key at the speed of memory: each instance fetches units ahead and decides in process; the limit still holds in every window.
 *
 *   node examples/library/prefetch.mjs redis://127.0.0.1:6379
 *
 * The two limiters stand for two instances of a service.
 */
import { randomUUID } from "node:crypto";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";

const url = process.argv[2] ?? "redis://127.0.0.1:6379";
const limit = 20_000;
/** @type {import("sluice").Rule[]} */
const rules = [{ id: "hot", key: ["api_key"], algorithm: "rolling-window", limit, window: "1m", prefetch: "1s" }];
const options = { deadlineMs: 10_000 };
const instances = [1, 2].map(() => createLimiter({ store: redisStore(url, options), rules, instances: 2 }));

if (!(await instances[0].ready()) || !(await instances[1].ready())) {
  console.error(`no Redis answers at ${url}`);
  process.exitCode = 1;
} else {
  // A key of its own for each run, so that the example can be repeated.
  const request = { api_key: randomUUID() };
  const admitted = await Promise.all(
    instances.map(async (limiter) => {
      let count = 0;
      for (let sent = 0; sent < 15_000; sent += 100) {
        const decisions = await Promise.all(Array.from({ length: 100 }, () => limiter.check(request)));
        count += decisions.filter(({ allowed }) => allowed).length;
      }
      return count;
    }),
  );
  const sum = admitted[0] + admitted[1];
  const inProcess = instances.reduce((total, limiter) => total + (limiter.prefetchStats()?.decided ?? 0), 0);
  console.log(`sent 30000, admitted ${sum} of ${limit}`);
  console.log(`decided in process: ${Math.round((100 * inProcess) / sum)} % of those`);
}
await Promise.all(instances.map((limiter) => limiter.close()));
