/**
 * Limits that a fleet shares: counters in Redis, several rules decided in one script call, and a refund by request id.
 *
 *   node examples/library/redis.mjs redis://127.0.0.1:6379
 *
 * The two limiters stand for two instances of a service.
 */
import { randomUUID } from "node:crypto";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";

const url = process.argv[2] ?? "redis://127.0.0.1:6379";
/** @type {import("sluice").Rule[]} */
const rules = [
  { id: "requests", key: ["user"], algorithm: "rolling-window", storage: "packed", limit: 100, window: "1m" },
  { id: "orders", match: { path: "/orders" }, key: ["user"], algorithm: "fixed-window", limit: 2, window: "1d" },
  { id: "everyone", key: [], algorithm: "gcra", limit: 10_000, window: "1s", onStoreFailure: "deny" },
];
// Generous, so that the first connection is waited for; the default, 50 ms, suits a service under load.
const options = { deadlineMs: 10_000 };
const here = createLimiter({ store: redisStore(url, options), rules, instances: 2 });
const there = createLimiter({ store: redisStore(url, options), rules, instances: 2 });
here.on("degraded", (cause) => console.error(`Redis does not answer, each rule's policy does: ${String(cause)}`));

if (!(await here.ready()) || !(await there.ready())) {
  console.error(`no Redis answers at ${url}`);
  process.exitCode = 1;
} else {
  // A user of its own for each run, so that the example can be repeated.
  const request = { user: randomUUID(), path: "/orders" };
  const id = randomUUID();

  const first = await here.check(request, { id });
  console.log(`here, first order:   allowed ${first.allowed}, orders left ${first.remaining}`);
  const again = await there.check(request, { id });
  console.log(
    `there, sent again:   allowed ${again.allowed}, orders left ${again.remaining} (the same id is charged once)`,
  );
  const second = await there.check(request);
  console.log(`there, second order: allowed ${second.allowed}, orders left ${second.remaining}`);
  const third = await here.check(request);
  console.log(`here, third order:   allowed ${third.allowed}, refused by ${third.violated.join(", ")}`);
  const requests = third.checks.find(({ rule }) => rule === "requests");
  console.log(`                     requests left ${requests?.remaining} (the refused one was charged nowhere)`);

  // The first order fell through: the other instance gives it back, knowing nothing but its id.
  console.log(`there, refund:       ${await there.refund(id)}, and once more: ${await there.refund(id)}`);
  // (`here` remembers for up to a second that it refused, and would not ask Redis meanwhile.)
  const last = await there.check(request);
  console.log(`there, order anew:   allowed ${last.allowed}, orders left ${last.remaining}`);
}
await Promise.all([here.close(), there.close()]);
