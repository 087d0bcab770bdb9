/**
 * Several regions: one limit for the world, held in units that regions fetch ahead, and one limit of each region.
 * The stores are in this process, so that it runs anywhere; in production each is a Redis: examples/library/regions.mjs.
 *
 *   node examples/recipes/several-regions.mjs
 */
import { readFileSync } from "node:fs";
import { createLimiter, memoryStore } from "sluice";
import { parse } from "yaml";

const { rules } = parse(readFileSync(new URL("several-regions.yaml", import.meta.url), "utf8"));
const home = memoryStore();
const regions = ["eu", "us", "asia"].map((region) =>
  createLimiter({ rules, region, store: memoryStore(), globalStore: home }),
);

/** The same customer, in all regions at once, far above the limit. */
let admitted = 0;
for (let round = 0; round < 50; round++) {
  const decisions = await Promise.all(
    regions.flatMap((limiter) =>
      Array.from({ length: 20 }, (_, i) => limiter.check({ account: "acme", ip: `192.0.2.${i}` })),
    ),
  );
  admitted += decisions.filter(({ allowed }) => allowed).length;
}
console.log(`3000 sent to three regions, ${admitted <= 1000 ? "never more than" : "more than"} 1000 admitted`);
console.log(`used of the limit: ${admitted > 500 ? "more than half" : `${admitted / 10} %`}`);

/** One address in one region: the others do not hear of it. */
const flood = { ip: "203.0.113.5" };
while ((await regions[0].check(flood)).allowed);
console.log(`flooded eu: refused there, ${(await regions[1].check(flood)).allowed ? "served" : "refused"} in us`);
await Promise.all(regions.map((limiter) => limiter.close()));
