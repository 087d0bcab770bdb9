/**
 * Bytes that a request through Express allocates: with the adapter, with express-rate-limit, and bare. Counted, not timed: the figures do
 * not depend on the machine's load. Run in a process whose young generation is so large that nothing is collected meanwhile:
 *
 *   node --expose-gc --min-semi-space-size=256 --max-semi-space-size=256 bench/express-allocations.mjs
 */
import { apps, requestThrough } from "./express-apps.mjs";

const COUNT = 5_000;

/** @type {Record<string, number>} */
const bytes = {};
for (const [name, app] of Object.entries(apps)) {
  for (let i = 0; i < COUNT; i++) await requestThrough(app, i);
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < COUNT; i++) await requestThrough(app, i);
  bytes[name] = Math.round((process.memoryUsage().heapUsed - before) / COUNT);
}
console.log(JSON.stringify(bytes));
process.exit();
