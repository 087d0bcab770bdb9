/**
 * What `--workers` gains: requests a second, processor time a request and memory of the whole service, by the number of workers.
 *
 *   npm run build && node bench/worker-curve.mjs [--workers 1,2,4] [--connections 64] [--requests N]
 *
 * The load runs in processes of its own, as many as workers. It shares the machine with Redis and the service, so on two cores only the
 * processor time a request says something (aim: two workers take at most 1.15 of one's); on a larger machine the rate does too.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { loadFrames } from "./grpc-load.mjs";
import { median } from "./measure.mjs";
import { cpuUsOf, residentMbOf, treeOf } from "./process-figures.mjs";
import { startRedis } from "./redis-server.mjs";
import { apis } from "./rls-messages.mjs";
import { startSluice } from "./rls-service.mjs";

const AIM = 1.15;
const USERS = 10_000;
const self = fileURLToPath(import.meta.url);

/** @returns {Promise<number>} requests a second */
async function runLoad(load) {
  const child = fork(self, ["--as-load"]);
  child.send(load);
  const [perSecond] = await once(child, "message");
  await once(child, "exit");
  return perSecond;
}

async function asLoad() {
  const [load] = await once(process, "message");
  const messages = Array.from({ length: USERS }, (_, i) => apis.rls.messageOf({ key: "user", value: `user-${i}` }));
  const { perSecond } = await loadFrames({ ...load, path: apis.rls.path, messages });
  process.send(perSecond);
  process.disconnect();
}

async function row(workers, { store, requests, connections, repetitions }) {
  const service = await startSluice([...store, "--workers", String(workers)]);
  try {
    const share = { count: Math.ceil(requests / workers), connections: Math.ceil(connections / workers) };
    const load = { host: service.host, port: service.port, ...share, inFlight: share.connections };
    const all = () => Promise.all(Array.from({ length: workers }, () => runLoad(load)));
    await all();
    const runs = [];
    for (let i = 0; i < repetitions; i++) {
      const before = treeOf(service.pid).reduce((sum, pid) => sum + cpuUsOf(pid), 0);
      const rates = await all();
      const after = treeOf(service.pid).reduce((sum, pid) => sum + cpuUsOf(pid), 0);
      runs.push({
        perSecond: rates.reduce((sum, rate) => sum + rate, 0),
        us: (after - before) / (share.count * workers),
      });
    }
    const resident = treeOf(service.pid).map(residentMbOf);
    return {
      workers,
      perSecond: median(runs.map((run) => run.perSecond)),
      us: median(runs.map((run) => run.us)),
      resident,
    };
  } finally {
    await service.stop();
  }
}

async function main() {
  const { values } = parseArgs({
    options: {
      workers: { type: "string" },
      connections: { type: "string", default: "64" },
      requests: { type: "string", default: "60000" },
    },
  });
  const upTo = Array.from({ length: Math.max(2, availableParallelism()) }, (_, i) => i + 1);
  const counts = values.workers?.split(",").map(Number) ?? upTo;
  const redis = await startRedis();
  const store = ["--store", redis.url, "--store-deadline", "2s"];
  const options = { store, requests: Number(values.requests), connections: Number(values.connections), repetitions: 5 };
  console.log(`gRPC, ${values.connections} connections x 1, Redis, ${availableParallelism()} cores`);
  console.log("  workers  requests/s  us a request  of one's  MB: first process, each worker");
  let one;
  for (const count of counts) {
    const { perSecond, us, resident } = await row(count, options);
    one ??= us;
    const cells = [String(count).padStart(9), perSecond.toFixed(0).padStart(11), us.toFixed(1).padStart(13)];
    console.log(
      `${cells.join(" ")} ${(us / one).toFixed(2).padStart(9)}  ${resident.map((mb) => mb.toFixed(0)).join(", ")}`,
    );
    if (count === 2 && counts[0] === 1)
      console.log(`  ${us / one <= AIM ? "met" : "MISSED"}: two workers at most ${AIM} of one's`);
  }
  await redis.stop();
}

if (process.argv.includes("--as-load")) await asLoad();
else await main();
