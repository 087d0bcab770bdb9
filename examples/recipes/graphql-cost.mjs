/**
 * GraphQL: requests differ in cost by a factor of thousands, so points are counted, not requests. The cost is estimated from the query
 * before it runs: one point for each object that it may load, lists by their `first`.
 * `pointsOf` reads the query by itself to keep this example without dependencies; with graphql-js, visit the parsed document instead.
 *
 *   node examples/recipes/graphql-cost.mjs
 */
import { readFileSync } from "node:fs";
import { createLimiter } from "sluice";
import { answerOf } from "sluice/http";
import { virtualClock } from "sluice/testing";
import { parse } from "yaml";

const { rules } = parse(readFileSync(new URL("graphql-cost.yaml", import.meta.url), "utf8"));
const limiter = createLimiter({ clock: virtualClock(), rules });

/** A field with a selection loads an object; `first: n` loads n, each with all that lies below. */
function pointsOf(query) {
  const tokens = query.match(/[{}]|\w+(?:\s*\([^)]*\))?/g) ?? [];
  const multipliers = [1];
  let points = 0;
  for (const [at, token] of tokens.entries()) {
    if (token === "}") multipliers.pop();
    if (token !== "{" || at === 0) continue;
    const first = Number(/first:\s*(\d+)/.exec(tokens[at - 1])?.[1] ?? 1);
    const loaded = multipliers.at(-1) * first;
    points += loaded;
    multipliers.push(loaded);
  }
  return points;
}

async function execute(user, query) {
  const points = pointsOf(query);
  const decision = await limiter.check({ user, points });
  await decision.lease?.release(); // behind the answer, in a server
  const left = decision.checks.find(({ rule }) => rule === "query-points").remaining;
  console.log(`${points} points: ${decision.allowed ? `allowed, ${left} left` : answerOf(decision).body.detail}`);
}

await execute("ann", "{ viewer { name } }");
await execute("ann", "{ orders(first: 50) { id items(first: 10) { name } } }");
await execute("ann", "{ orders(first: 100) { items(first: 100) { product { reviews(first: 100) { text } } } } }");
await execute("ann", "{ orders(first: 40) { id items(first: 10) { name } } }");
await execute("ann", "{ orders(first: 10) { id items(first: 10) { name } } }");
await limiter.close();
