/**
 * Expensive endpoints: weights by endpoint against one budget, places for what holds a connection, a bound for all tenants together.
 * Slow work is bounded by places (how many at once), not by a rate: when the database slows down, a rate lets it drown.
 *
 *   node examples/recipes/expensive-endpoints.mjs
 */
import { readFileSync } from "node:fs";
import { createLimiter } from "sluice";
import { virtualClock } from "sluice/testing";
import { parse } from "yaml";

const { rules } = parse(readFileSync(new URL("expensive-endpoints.yaml", import.meta.url), "utf8"));
const limiter = createLimiter({ clock: virtualClock(), rules });
/** From measurements: about one for each millisecond of the database. */
const weights = { "/users/1": 1, "/search": 10, "/reports/year": 25 };

async function ask(tenant, path) {
  const decision = await limiter.check({ tenant, user: `${tenant}/1`, path, weight: weights[path] });
  const points = decision.checks.find(({ rule }) => rule === "weight").remaining;
  console.log(
    `${tenant} ${path}: ${decision.allowed ? "served" : `refused by ${decision.violated.join(" and ")}`}, ${points} points left`,
  );
  return decision.lease;
}

await ask("acme", "/users/1");
await ask("acme", "/search");
const first = await ask("acme", "/reports/year");
await ask("acme", "/reports/year");
await ask("acme", "/reports/year");
await ask("globex", "/reports/year");
await ask("initech", "/reports/year");
await first.release();
await ask("initech", "/reports/year");
await limiter.close();
