/**
 * One limit over two regions: each has a Redis of its own, and holds units of the counter at home.
 *
 *   node examples/library/regions.mjs redis://127.0.0.1:6379 redis://127.0.0.1:6380 redis://127.0.0.1:6381
 *
 * The first is home, the others are the regions'. With one URL all three are the same Redis, which works as well.
 */
import { randomUUID } from "node:crypto";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";

const [home = "redis://127.0.0.1:6379", eu = home, us = home] = process.argv.slice(2);
const limit = 2_000;
/** @type {import("sluice").Rule[]} */
const rules = [
  { id: "per-account", key: ["account"], algorithm: "rolling-window", limit, window: "1m", scope: "global" },
  { id: "per-region", key: [], algorithm: "token-bucket", limit: 1_000_000, window: "1s" },
];
/** @param {string} region @param {string} url */
const open = (region, url) =>
  createLimiter({
    rules,
    region,
    store: redisStore(url, { deadlineMs: 10_000 }),
    globalStore: redisStore(home, { deadlineMs: 10_000 }),
  });
const regions = [open("eu", eu), open("us", us)];

if (!(await regions[0].ready()) || !(await regions[1].ready())) {
  console.error("no Redis answers");
  process.exitCode = 1;
} else {
  // A key of its own for each run, so that the example can be repeated.
  const request = { account: randomUUID() };
  const admitted = await Promise.all(
    regions.map(async (limiter) => {
      let count = 0;
      for (let sent = 0; sent < 2_000; sent += 50) {
        const decisions = await Promise.all(Array.from({ length: 50 }, () => limiter.check(request)));
        count += decisions.filter(({ allowed }) => allowed).length;
      }
      return count;
    }),
  );
  const fetches = regions.reduce((sum, limiter) => sum + (limiter.regionStats()?.fetches ?? 0), 0);
  console.log(`sent 4000, admitted ${admitted[0] + admitted[1]} of ${limit}`);
  console.log(`fetches home: ${fetches}`);
}
await Promise.all(regions.map((limiter) => limiter.close()));
