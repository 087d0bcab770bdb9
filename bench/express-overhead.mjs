/**
 * What the Express adapter costs a request, against express-rate-limit, each with its own memory store, in one run.
 *
 *   npm run build && node bench/express-overhead.mjs [--quick] [--json FILE]
 *
 * The overhead is the time of a request through the application with the middleware minus that without any. Applications take turns in short slices, each round
 * in another order, so that a noisy machine hurts all of them alike; of the slices of each, the lower quartile counts, because what
 * disturbs a slice only ever makes it slower; medians are shown beside it.
 */
import { writeFileSync } from "node:fs";
import { apps, requestThrough } from "./express-apps.mjs";

const quick = process.argv.includes("--quick");
const jsonAt = process.argv.indexOf("--json");
const SLICES = quick ? 40 : 300;
const REQUESTS_PER_SLICE = 500;

/** @param {import("express").Express} app */
async function slice(app) {
  // Processor time rather than the clock's: on a shared machine the clock measures the neighbours.
  const before = process.cpuUsage();
  for (let i = 0; i < REQUESTS_PER_SLICE; i++) await requestThrough(app, i);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / REQUESTS_PER_SLICE;
}

/**
 * @param {number[]} values
 * @param {number} share
 */
function quantile(values, share) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)];
}

/** @type {Record<string, number[]>} */
const times = Object.fromEntries(Object.keys(apps).map((name) => [name, []]));
const WARM_UP = 20;
for (let i = -WARM_UP; i < SLICES; i++) {
  const order = Object.entries(apps).sort(() => Math.random() - 0.5);
  for (const [name, app] of order) {
    const tookUs = await slice(app);
    if (i >= 0) times[name].push(tookUs);
  }
}

/** @param {number} share */
function compare(share) {
  const bareUs = quantile(times.bare, share);
  const names = Object.keys(apps).slice(1);
  const overheadUs = Object.fromEntries(names.map((name) => [name, quantile(times[name], share) - bareUs]));
  const ratios = Object.fromEntries(
    Object.entries(pairs).map(([name, [ours, theirs]]) => [name, overheadUs[ours] / overheadUs[theirs]]),
  );
  return { bareUs, overheadUs, ratios };
}

const pairs = {
  "defaults against defaults": ["sluice, draft-11 (its default)", "express-rate-limit, legacy (its default)"],
  "current draft against draft-8": ["sluice, draft-11 (its default)", "express-rate-limit, draft-8"],
  "draft-7 against draft-7": ["sluice, draft-7", "express-rate-limit, draft-7"],
  "legacy against legacy": ["sluice, legacy", "express-rate-limit, legacy (its default)"],
  "no fields against no fields": ["sluice, no fields", "express-rate-limit, no fields"],
};
const quartile = compare(0.25);
const median = compare(0.5);

console.log(
  `bare Express: ${quartile.bareUs.toFixed(2)} us a request (median ${median.bareUs.toFixed(2)}); on top of it:`,
);
for (const [name, us] of Object.entries(quartile.overheadUs)) {
  console.log(`  ${name.padEnd(42)} ${us.toFixed(2).padStart(6)} us (median ${median.overheadUs[name].toFixed(2)})`);
}
console.log("sluice / express-rate-limit (below 1: cheaper):");
for (const [name, ratio] of Object.entries(quartile.ratios)) {
  console.log(`  ${name.padEnd(42)} ${ratio.toFixed(2).padStart(6)}    (median ${median.ratios[name].toFixed(2)})`);
}
if (jsonAt !== -1) writeFileSync(process.argv[jsonAt + 1], `${JSON.stringify({ ...quartile, median }, null, 2)}\n`);
