/**
 * Plans and tenants: each plan has its numbers, a customer may have bought more, and one user cannot use up a tenant's plan.
 * Plan and tenant come from your own records (here a table), never from what the client sends.
 *
 *   node examples/recipes/plans-and-tenants.mjs
 */
import { readFileSync } from "node:fs";
import { createLimiter } from "sluice";
import { virtualClock } from "sluice/testing";
import { parse } from "yaml";

const { rules } = parse(readFileSync(new URL("plans-and-tenants.yaml", import.meta.url), "utf8"));
const limiter = createLimiter({ clock: virtualClock(), rules });
const planOf = new Map([
  ["tiny", "free"],
  ["globex", "pro"],
  ["acme", "enterprise"],
]);

/** Sends requests of several users in turn; counts what passed, and which rules refused the rest. */
async function send(tenant, { users, times }) {
  let passed = 0;
  const refusals = new Set();
  for (let i = 0; i < times; i++) {
    const user = `user-${i % users}`;
    const decision = await limiter.check({ tenant, plan: planOf.get(tenant), user });
    if (decision.allowed) passed++;
    else refusals.add(decision.violated.join(" and "));
  }
  const by = refusals.size === 0 ? "" : `, refused by ${[...refusals].join("; ")}`;
  console.log(`${tenant}, ${planOf.get(tenant)}, ${users} users: ${passed} of ${times} passed${by}`);
}

await send("tiny", { users: 1, times: 30 });
await send("globex", { users: 1, times: 200 });
await send("globex", { users: 10, times: 200 });
await send("acme", { users: 20, times: 400 });

// An upgrade is a change of the tenant's record. The next request has the new plan; nothing is restarted.
planOf.set("tiny", "pro");
await send("tiny", { users: 1, times: 30 });
await limiter.close();
