/**
 * Quick start: limits in this process's memory, nothing else to run.
 *
 *   node examples/library/memory.mjs
 */
import { createLimiter } from "sluice";

const limiter = createLimiter({
  rules: [
    { id: "per-user", key: ["user"], algorithm: "rolling-window", limit: 3, window: "10s" },
    { id: "search", match: { path: "/search" }, key: ["user"], algorithm: "token-bucket", limit: 1, window: "1m" },
  ],
});

for (const path of ["/home", "/search", "/search", "/home", "/home"]) {
  const decision = await limiter.check({ user: "ann", path });
  console.log(path.padEnd(8), describe(decision));
}
console.log("bob's   ", describe(await limiter.check({ user: "bob", path: "/home" })));

/** @param {import("sluice").Decision} decision */
function describe({ allowed, rule, limit, remaining, violated, retryAfterMs }) {
  if (allowed) return `allowed, ${remaining} of ${limit} left under ${rule}`;
  // Round up: a client told "1 s" at 1.4 s would come back early and be refused twice.
  return `refused by ${violated.join(", ")}, try again in ${Math.ceil(retryAfterMs / 1000)} s`;
}
