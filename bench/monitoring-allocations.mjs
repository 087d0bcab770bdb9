/**
 * Bytes that a decision allocates with monitoring on and with it off, by known users: counted, not timed, so the figures do not depend on
 * the machine's load. Run in a process whose young generation is so large that nothing is collected meanwhile:
 *
 *   npm run build && node --expose-gc --min-semi-space-size=256 --max-semi-space-size=256 bench/monitoring-allocations.mjs
 */
import { createLimiter } from "sluice";

const { observeTraffic } = await import(new URL("../packages/server/dist/monitoring/traffic.js", import.meta.url).href);
const COUNT = 50_000;
// With options, if empty ones, a check takes the same way whether or not anybody listens: without, a book of one rule has a short one.
const OPTIONS = {};
const users = Array.from({ length: 1_000 }, (_, i) => `user-${i}`);

/** @param {boolean} isCounted */
async function bytesOf(isCounted) {
  const rules = [{ id: "r", key: ["user"], algorithm: "token-bucket", limit: 1_000_000, window: "1h" }];
  const limiter = createLimiter({ rules: /** @type {import("sluice").Rule[]} */ (rules) });
  observeTraffic(limiter, { isCounted });
  for (let i = 0; i < COUNT; i++) await limiter.check({ user: users[i % users.length] }, OPTIONS);
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < COUNT; i++) await limiter.check({ user: users[i % users.length] }, OPTIONS);
  const bytes = Math.round((process.memoryUsage().heapUsed - before) / COUNT);
  await limiter.close();
  return bytes;
}

console.log(JSON.stringify({ on: await bytesOf(true), off: await bytesOf(false) }));
process.exit();
