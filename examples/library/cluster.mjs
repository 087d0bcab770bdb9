/**
 * Limits on a Redis Cluster (or behind Sentinels): which guarantee a decision has, and what is told when the store is not there.
 *   node examples/library/cluster.mjs redis+cluster://127.0.0.1:7000,127.0.0.1:7001
 */
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";

const url = process.argv[2] ?? "redis+cluster://127.0.0.1:7000";
/** @type {import("sluice").Rule[]} */
const rules = [
  { id: "per-user", key: ["user"], algorithm: "rolling-window", limit: 100, window: "1m", onStoreFailure: "local" },
  { id: "per-path", key: ["path"], algorithm: "token-bucket", limit: 1000, window: "1m" },
];
const request = { tenant: "acme", user: "ann", path: "/search" };

const limiter = createLimiter({ store: redisStore(url, { deadlineMs: 10_000 }), rules });
// Once for an outage, with the cause and what to do about it.
limiter.on("degraded", (cause) => console.log(`degraded: ${cause.message}`));
limiter.on("recovered", () => console.log("the store decides again"));

const apart = await limiter.check(request);
console.log(`two slots:  ${apart.guarantee}${apart.degraded ? `, decided by policy: ${apart.degraded}` : ""}`);

// All counters of a tenant in one slot: one script decides again.
limiter.setRules(rules.map((rule) => ({ ...rule, colocate: "tenant" })));
const together = await limiter.check(request);
console.log(`colocated:  ${together.guarantee}${together.degraded ? `, decided by policy: ${together.degraded}` : ""}`);
await limiter.close();
