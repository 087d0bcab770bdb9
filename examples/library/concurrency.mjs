/**
 * At most two exports at once. Each holds a lease while it works, renews it, and hears by an AbortSignal if it was lost.
 *
 *   node examples/library/concurrency.mjs
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter } from "sluice";

const limiter = createLimiter({
  rules: [{ id: "exports", key: [], algorithm: "concurrency", limit: 2, ttl: "2s" }],
});

/**
 * @param {string} name
 * @param {{ workMs: number, renews: boolean }} how
 */
async function exportReport(name, { workMs, renews }) {
  const { allowed, lease } = await limiter.check({});
  if (!allowed) return console.log(`${name}: refused, all places are taken`);
  console.log(`${name}: started`);
  // A third of the term: one renewal may fail or be late without the lease being lost.
  const renewal = renews && setInterval(() => lease?.renew().catch(() => {}), (lease?.expiresAfterMs ?? 2_000) / 3);
  try {
    // Hand the signal to whatever does the work, here a timer; fetch and most drivers take one too.
    await sleep(workMs, undefined, { signal: lease?.signal });
    console.log(`${name}: done`);
  } catch {
    console.log(`${name}: stopped, ${lease?.signal.reason.message}`);
  } finally {
    clearInterval(renewal || undefined);
    // Where the compiler knows it, `await using lease = decision.lease` does this at the end of the block.
    await lease?.release();
  }
}

const long = exportReport("long, renewed", { workMs: 5_000, renews: true });
const stuck = exportReport("stuck, not renewed", { workMs: 60_000, renews: false });
await exportReport("third", { workMs: 10, renews: false });
await stuck;
await exportReport("fourth", { workMs: 10, renews: false });
await long;
