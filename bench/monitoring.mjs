/**
 * What monitoring costs: decisions a second of the service with all of it on against all of it off, in one run.
 *
 *   npm run build && node bench/monitoring.mjs [--quick] [--memory] [--json FILE]
 *
 * Two services in one process take turns in short slices under the same load, each round in another order. What counts is the median of the
 * rounds' ratios: what else the machine does falls on neighbours alike. (Two processes of the same program differ by up to six per
 * cent by chance: 0.935 and 1.034 were seen in a row.) Processor time a request stands beside it. The service that is on writes its history and
 * top keys meanwhile, and both are scraped: what happens once a second falls on both; it is 0.2 % of the processor time in a profile.
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

/** @typedef {{ slices: number, count: number, users: number, redisUrl?: string }} Load */

/** @param {Load} load */
async function compare({ slices, count, users, redisUrl }) {
  const kind = redisUrl === undefined ? "sluice on and off" : "sluice redis on and off";
  const server = await start(kind, Buffer.from(redisUrl ?? ""));
  const messages = httpMessagesFor(users);
  /** @type {Record<string, { cpuUs: number[], perSecond: number[] }>} */
  const seen = { on: { cpuUs: [], perSecond: [] }, off: { cpuUs: [], perSecond: [] } };
  const scraping = setInterval(() => {
    for (const port of Object.values(server.ports))
      fetch(`http://127.0.0.1:${port}/metrics`).then(
        (answer) => answer.text(),
        () => undefined,
      );
  }, 5_000);
  try {
    for (let round = -20; round < slices; round++) {
      const names = round % 2 === 0 ? ["on", "off"] : ["off", "on"];
      for (const name of names) {
        const port = server.ports[name];
        const before = await server.cpuUs();
        const { perSecond } = await loadHttp({ port, count, connections: 64, messages });
        const cpuUs = ((await server.cpuUs()) - before) / count;
        if (round < 0) continue;
        seen[name].cpuUs.push(cpuUs);
        seen[name].perSecond.push(perSecond);
      }
    }
  } finally {
    clearInterval(scraping);
    server.stop();
  }
  const { on, off } = seen;
  const ratios = (/** @type {number[]} */ above, /** @type {number[]} */ below) =>
    above.map((value, i) => value / below[i]);
  return {
    ratio: quantile(ratios(on.perSecond, off.perSecond), 0.5),
    processorRatio: quantile(ratios(off.cpuUs, on.cpuUs), 0.5),
    onUs: quantile(on.cpuUs, 0.5),
    offUs: quantile(off.cpuUs, 0.5),
  };
}

/** @param {{ quick: boolean, memoryOnly: boolean }} options */
export async function monitoringCost({ quick, memoryOnly }) {
  const slices = quick ? 200 : 500;
  const count = 1_000;
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

/** @param {Awaited<ReturnType<typeof monitoringCost>>} outcome */
export function printMonitoring(outcome) {
  console.log("\nDecisions a second with monitoring on, as a share of those with it off:");
  for (const [name, { ratio, processorRatio, onUs, offUs }] of Object.entries(outcome)) {
    const processor = `by processor time ${processorRatio.toFixed(3)}: ${onUs.toFixed(1)} and ${offUs.toFixed(1)} us a request`;
    console.log(`  ${name.padEnd(28)} ${ratio.toFixed(3)}  (wanted ${LEAST}; ${processor})`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const outcome = await monitoringCost({
    quick: process.argv.includes("--quick"),
    memoryOnly: process.argv.includes("--memory"),
  });
  printMonitoring(outcome);
  const jsonAt = process.argv.indexOf("--json");
  if (jsonAt !== -1)
    writeFileSync(process.argv[jsonAt + 1] ?? "monitoring.json", `${JSON.stringify(outcome, null, 2)}\n`);
}
