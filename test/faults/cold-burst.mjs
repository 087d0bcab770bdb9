/** A cold process whose first turn asks for many checks at once; tells how many were left to the policy. */
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";

const [url = "", count] = process.argv.slice(2);
const ids = ["a", "b", "c"];
/** @type {import("sluice").Rule[]} */
const rules = ids.map((id) => ({
  id,
  key: ["user"],
  match: { rule: id },
  algorithm: "rolling-window",
  limit: 10,
  window: "1h",
}));
const limiter = createLimiter({ store: redisStore(url), rules });
const decisions = await Promise.all(
  Array.from({ length: Number(count) }, (_, i) => limiter.check({ user: `u${i}`, rule: ids[i % 3] ?? "a" })),
);
console.log(JSON.stringify({ byPolicy: decisions.filter(({ degraded }) => degraded !== undefined).length }));
await limiter.close();
