/**
 * What monitoring costs: decisions a second of the service with all of it on against all of it off, in one run.
 *
 *   npm run build && node bench/monitoring.mjs [--quick] [--memory] [--json FILE]
 *
 * Two services, processes of their own, take turns in short slices under the same load, each round in another order. What counts is the upper
 * quartile of each one's slices: what else the machine does only ever makes a slice slower. Two processes of the same program differ by a few
 * per cent by chance, so several pairs are started, and the median of their ratios counts. Processor time a request, of all threads of a server,
 * stands beside it. The service that is on writes its history and top keys meanwhile; both are scraped.
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startRedis } from "./redis-server.mjs";
import { httpMessagesFor, start } from "./service.mjs";
import { loadHttp } from "./service-load.mjs";

const LEAST = 0.95;

/**
 * @param {number[]} values
 * @param {number} share
 */
function quantile(values, share) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)];
}

const PAIRS = 3;

/** @typedef {{ slices: number, count: number, users: number, redisUrl?: string }} Load */

/** @param {Load} load */
async function compare(load) {
  const pairs = [];
  for (let i = 0; i < PAIRS; i++) pairs.push(await comparePair(load));
  return Object.fromEntries(
    Object.keys(pairs[0]).map((name) => [
      name,
      quantile(
        pairs.map((pair) => pair[/** @type {"ratio"} */ (name)]),
        0.5,
      ),
    ]),
  );
}

/** @param {Load} load */
async function comparePair({ slices, count, users, redisUrl }) {
  const kind = redisUrl === undefined ? "sluice" : "sluice redis";
  const constant = Buffer.from(redisUrl ?? "");
  const servers = { on: await start(kind, constant), off: await start(`${kind} off`, constant) };
  const messages = httpMessagesFor(users);
  /** @type {Record<string, { cpuUs: number[], perSecond: number[] }>} */
  const seen = { on: { cpuUs: [], perSecond: [] }, off: { cpuUs: [], perSecond: [] } };
  const scraping = setInterval(() => {
    for (const { ports } of Object.values(servers))
      fetch(`http://127.0.0.1:${ports.http}/metrics`).then(
        (answer) => answer.text(),
        () => undefined,
      );
  }, 5_000);
  try {
    for (let round = -5; round < slices; round++) {
      const names = round % 2 === 0 ? ["on", "off"] : ["off", "on"];
      for (const name of names) {
        const server = servers[/** @type {"on" | "off"} */ (name)];
        const before = await server.cpuUs();
        const { perSecond } = await loadHttp({ port: server.ports.http, count, connections: 64, messages });
        const cpuUs = ((await server.cpuUs()) - before) / count;
        if (round < 0) continue;
        seen[name].cpuUs.push(cpuUs);
        seen[name].perSecond.push(perSecond);
      }
    }
  } finally {
    clearInterval(scraping);
    for (const server of Object.values(servers)) server.stop();
  }
  const onUs = quantile(seen.on.cpuUs, 0.25);
  const offUs = quantile(seen.off.cpuUs, 0.25);
  return {
    ratio: quantile(seen.on.perSecond, 0.75) / quantile(seen.off.perSecond, 0.75),
    processorRatio: offUs / onUs,
    onUs,
    offUs,
  };
}

/** @param {{ quick: boolean, memoryOnly: boolean }} options */
export async function monitoringCost({ quick, memoryOnly }) {
  const slices = quick ? 16 : 60;
  const count = quick ? 3_000 : 10_000;
  if (memoryOnly) return { "memory store, 1000 users": await compare({ slices, count, users: 1_000 }) };
  const redis = await startRedis();
  try {
    return {
      "memory store, 1000 users": await compare({ slices, count, users: 1_000 }),
      "memory store, 50 000 users": await compare({ slices, count, users: 50_000 }),
      "Redis, 1000 users": await compare({ slices, count, users: 1_000, redisUrl: redis.url }),
    };
  } finally {
    await redis.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const outcome = await monitoringCost({
    quick: process.argv.includes("--quick"),
    memoryOnly: process.argv.includes("--memory"),
  });
  console.log("decisions a second with monitoring on, as a share of those with it off:");
  for (const [name, { ratio, processorRatio, onUs, offUs }] of Object.entries(outcome)) {
    const processor = `by processor time ${processorRatio.toFixed(3)}: ${onUs.toFixed(1)} and ${offUs.toFixed(1)} us a request`;
    console.log(`  ${name.padEnd(28)} ${ratio.toFixed(3)}  (wanted ${LEAST}; ${processor})`);
  }
  const jsonAt = process.argv.indexOf("--json");
  if (jsonAt !== -1)
    writeFileSync(process.argv[jsonAt + 1] ?? "monitoring.json", `${JSON.stringify(outcome, null, 2)}\n`);
}
