/**
 * `npm run bench`: Sluice side by side with peers, in one run, on one machine. Ratios first: absolute figures depend on the hour.
 *   -- --quick        under two minutes
 *   -- --json FILE    the figures, too
 *   -- --svg FILE     a chart of the ratios
 *   -- --peer grpc=HOST:PORT   the gRPC load on another RLS server, too (several may be named); never beyond what you own
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { cpus, release, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { allocationsSection, printAllocations } from "./allocations.mjs";
import { bytesSection } from "./bytes.mjs";
import { clusterBars, clusterSections } from "./cluster.mjs";
import { llmBars, llmSection, printLlm } from "./llm.mjs";
import { logsBars, logsSection, printLogs } from "./logs.mjs";
import { hostileSection, matchingSection, printHostile, printMatching } from "./matching.mjs";
import { memorySection } from "./memory.mjs";
import { monitoringCost, printMonitoring } from "./monitoring.mjs";
import { overloadBars, overloadSection, printOverload } from "./overload.mjs";
import { prefetchBars, prefetchSection, printPrefetch } from "./prefetch.mjs";
import { progress } from "./progress.mjs";
import { redisSection } from "./redis.mjs";
import { startRedis } from "./redis-server.mjs";
import { printRegions, regionsBars, regionsSection } from "./regions.mjs";
import { chart, printBars, printBytes, printSection } from "./report.mjs";
import { printReservations, reservationsBars, reservationsSection } from "./reservations.mjs";
import { parsePeers, printService, serviceBars, serviceSections } from "./service.mjs";
import { printStalls, stallsSection } from "./stalls.mjs";
import { printStart, startSection } from "./start.mjs";
import { printUndisturbed, undisturbedBars, undisturbedSection } from "./undisturbed.mjs";
import { printWorkers, workersSection } from "./workers.mjs";
import { printWorld, worldBars, worldSection } from "./world.mjs";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean" },
    json: { type: "string" },
    svg: { type: "string" },
    peer: { type: "string", multiple: true, default: [] },
  },
});
const peers = parsePeers(values.peer);
const options = { quick: values.quick ?? false, repetitions: values.quick ? 3 : 5 };

const begin = progress([
  "memory store",
  "allocations",
  "matching",
  "hostile rules",
  "stalls",
  ...(options.quick ? [] : ["administration"]),
  "Redis",
  "cluster",
  "prefetch",
  ...(options.quick ? [] : ["world", "regions"]),
  "bytes",
  "start",
  "workers",
  "service",
  "monitoring",
  "Express",
  "logs",
  "LLM",
  "reservations",
  "overload",
]);

const redis = await startRedis();
try {
  const version = /redis_version:(\S+)/.exec(await redis.admin.info("server"))?.[1];
  const machine = {
    date: new Date().toISOString(),
    node: process.version,
    redis: version,
    cores: cpus().length,
    cpu: cpus()[0]?.model,
    kernel: release(),
  };
  console.log(
    `Redis ${version}, node ${process.version}, ${machine.cores} cores (${machine.cpu}); medians of ${options.repetitions} interleaved runs`,
  );
  begin("memory store");
  const memory = await memorySection(options);
  printSection(memory);
  begin("allocations");
  const allocations = await allocationsSection();
  printAllocations(allocations);
  begin("matching");
  const matching = matchingSection();
  printMatching(matching);
  begin("hostile rules");
  const hostile = await hostileSection();
  printHostile(hostile);
  begin("stalls");
  const stalls = await stallsSection();
  printStalls(stalls);
  if (!options.quick) begin("administration");
  const undisturbed = options.quick ? undefined : await undisturbedSection();
  if (undisturbed) printUndisturbed(undisturbed);
  begin("Redis");
  const sections = await redisSection(redis, options);
  for (const section of sections) printSection(section);
  begin("cluster");
  const clusters = await clusterSections(redis, options);
  for (const section of clusters) printSection(section);
  begin("prefetch");
  const prefetch = await prefetchSection(redis, options);
  printPrefetch(prefetch);
  if (!options.quick) begin("world");
  const world = options.quick ? undefined : await worldSection();
  if (world) printWorld(world);
  if (!options.quick) begin("regions");
  const regions = options.quick ? undefined : await regionsSection();
  if (regions) printRegions(regions);
  begin("bytes");
  const bytes = await bytesSection(redis);
  printBytes(bytes);
  begin("start");
  const start = await startSection(options, redis.url);
  printStart(start);
  begin("workers");
  const workers = await workersSection(redis, options);
  printWorkers(workers);
  begin("service");
  const service = await serviceSections({ ...options, redisUrl: redis.url, peers });
  printService(service);
  begin("monitoring");
  const monitoring = await monitoringCost({ quick: options.quick, memoryOnly: options.quick });
  printMonitoring(monitoring);
  begin("Express");
  const express = await expressOverhead(options);
  begin("logs");
  const logs = await logsSection(options);
  printLogs(logs);
  begin("LLM");
  const llm = await llmSection(options);
  printLlm(llm);
  begin("reservations");
  const reservations = await reservationsSection(redis, options);
  printReservations(reservations);
  begin("overload");
  const overload = await overloadSection(options);
  printOverload(overload);
  const bars = [
    ...barsOf({ memory, sections, bytes, monitoring, express }),
    ...(undisturbed ? undisturbedBars(undisturbed) : []),
    ...clusterBars(clusters),
    ...prefetchBars(prefetch),
    ...(world ? worldBars(world) : []),
    ...(regions ? regionsBars(regions) : []),
    ...serviceBars(service),
    ...logsBars(logs),
    ...llmBars(llm),
    ...reservationsBars(reservations),
    ...overloadBars(overload),
  ];
  printBars(bars);
  if (values.json) {
    await writeFile(
      values.json,
      `${JSON.stringify({ machine, memory, allocations, matching, hostile, stalls, undisturbed, sections, clusters, prefetch, world, regions, bytes, start, workers, service, monitoring, express, logs, llm, reservations, overload, bars }, null, 2)}\n`,
    );
  }
  if (values.svg) await writeFile(values.svg, chart([memory, ...sections, ...service.sections]));
} finally {
  await redis.stop();
}

/** In a process of its own, as it is run by hand: what else this one has compiled would be part of the figures. */
async function expressOverhead({ quick }) {
  const folder = await mkdtemp(join(tmpdir(), "sluice-bench-"));
  try {
    const file = join(folder, "express.json");
    const args = [fileURLToPath(new URL("express-overhead.mjs", import.meta.url)), "--json", file];
    const { stdout } = await promisify(execFile)(process.execPath, quick ? [...args, "--quick"] : args);
    console.log(`\n${stdout.trimEnd()}`);
    return JSON.parse(await readFile(file, "utf8"));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function barsOf({ memory, sections, bytes, monitoring, express }) {
  const find = (start) => sections.find(({ title }) => title.startsWith(start));
  const figures = (section, start) => Object.entries(section.results).find(([name]) => name.startsWith(start))[1];
  const cpu = ({ nodeUs, redisUs }) => nodeUs + redisUs;
  const perSecond = (section, peer) => figures(section, "sluice").perSecond / figures(section, peer).perSecond;
  const uniform = find("uniform keys, limit 100, 256");
  const attack = find("attack");
  const rows = [];
  const atMost = (what, bound, measured) =>
    rows.push({ what, wanted: `at most ${bound}`, measured, met: measured <= bound });
  const atLeast = (what, bound, measured) =>
    rows.push({ what, wanted: `at least ${bound}`, measured, met: measured >= bound });
  const perEntry = (name, limit) => bytes.find((row) => row.name.endsWith(name) && row.limit === limit).perEntry;
  atLeast(
    "memory store: token bucket against rate-limiter-flexible",
    1,
    memory.results["sluice, token-bucket"].perSecond / memory.results[memory.base].perSecond,
  );
  atMost(
    "exact rolling window, uniform keys: CPU per decision",
    0.6,
    cpu(figures(uniform, "sluice")) / cpu(figures(uniform, "rate-limiter")),
  );
  atLeast("the same: decisions a second", 1.7, perSecond(uniform, "rate-limiter"));
  atLeast("attack: against the peer without its block", 10, perSecond(attack, "rate-limiter-flexible, fixed"));
  atLeast("attack: against the peer with its block", 1.5, perSecond(attack, "rate-limiter-flexible, in-memory"));
  atLeast("one hot key", 4, perSecond(find("one hot key"), "rate-limiter"));
  atLeast("three rules a request", 2.5, perSecond(find("three rules"), "rate-limiter"));
  const full = find("packed rolling window");
  atMost(
    "packed: CPU per decision at limit 100 000 against limit 100",
    1.5,
    cpu(full.results["limit 100,000"]) / cpu(full.results["limit 100"]),
  );
  const lone = find("a lone check");
  atMost("lone check: p50 against a bare EVALSHA", 1.35, figures(lone, "sluice").p50Us / figures(lone, "bare").p50Us);
  atMost(
    "packed against sorted set: bytes per entry at limit 100",
    0.22,
    perEntry("packed", 100) / perEntry("sorted set", 100),
  );
  atMost(
    "packed against sorted set: bytes per entry at limit 1000",
    0.035,
    perEntry("packed", 1000) / perEntry("sorted set", 1000),
  );
  atMost("packed: bytes per entry at limit 100", 4.5, perEntry("packed", 100));
  atMost("packed: bytes per entry at limit 1000", 3.3, perEntry("packed", 1000));
  atLeast("service with monitoring on against off", 0.95, monitoring["memory store, 1000 users"].ratio);
  atMost("Express adapter: overhead against express-rate-limit", 1, express.ratios["defaults against defaults"]);
  return rows;
}
