/**
 * A cold process whose first turn asks for many checks at once; prints how many the store decided, and how many were left to the policy:
 * before their time was up, and after it.
 */
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
/** The most that a call waits where the process itself is late (docs/reliability.md). */
const MOST_WAIT_MS = 1_000;
const counts = { byStore: 0, early: 0, late: 0 };
await Promise.all(
  Array.from({ length: Number(count) }, async (_, i) => {
    const sinceMs = performance.now();
    const { degraded } = await limiter.check({ user: `u${i}`, rule: ids[i % 3] ?? "a" });
    if (degraded === undefined) counts.byStore++;
    else if (performance.now() - sinceMs < MOST_WAIT_MS) counts.early++;
    else counts.late++;
  }),
);
console.log(JSON.stringify(counts));
await limiter.close();
