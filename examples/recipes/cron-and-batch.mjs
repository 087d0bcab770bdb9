/**
 * Cron and batch: a job that all instances have a timer for runs once a day and never twice at a time; a batch goes at an even pace.
 *
 *   node examples/recipes/cron-and-batch.mjs
 */
import { readFileSync } from "node:fs";
import { createLimiter } from "sluice";
import { virtualClock } from "sluice/testing";
import { parse } from "yaml";

const { rules } = parse(readFileSync(new URL("cron-and-batch.yaml", import.meta.url), "utf8"));
const clock = virtualClock(Date.UTC(2026, 0, 1, 23, 30)); // half past midnight in Berlin
// One memory for all "instances" of this example; in a fleet, store: redisStore(url).
const limiter = createLimiter({ clock, rules });

async function onTimer(instance, work) {
  const decision = await limiter.check({ kind: "cron", job: "invoices" });
  if (!decision.allowed) return console.log(`${instance}: not now, ${decision.violated.join(" and ")}`);
  console.log(`${instance}: runs the invoices`);
  try {
    await work?.(decision.lease.signal); // renew the lease where it may take longer than its term: docs/library.md#leases
  } catch (error) {
    // A run that failed does not count: another instance may try it today.
    await limiter.refund(decision);
    console.log(`${instance}: ${error.message}`);
  } finally {
    await decision.lease.release();
  }
}

await onTimer("instance 1", () => onTimer("instance 2"));
await onTimer("instance 3");
clock.advance("1d");
await onTimer("instance 2, a day later", async () => {
  throw new Error("the printer is on fire");
});
await onTimer("instance 1, after it");

// The batch: 100 rows at a time. A turn says how long to wait; no instance sleeps for another.
const delays = [];
for (let step = 0; step < 5; step++) {
  const { delayMs } = await limiter.check({ kind: "batch", job: "reindex", rows: 100 });
  delays.push(delayMs);
}
console.log(`batch, 100 rows a step: turns after ${delays.join(", ")} ms`);
await limiter.close();
