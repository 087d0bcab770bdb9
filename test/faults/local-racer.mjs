/**
 * One instance of several that share a limit under `onStoreFailure: local`: a process of its own, told what to do line by line.
 *   ask N    N checks, answered with how many passed and how many of all were answered by the policy
 */
import { createInterface } from "node:readline";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";

const [url = "", limit] = process.argv.slice(2);
const limiter = createLimiter({
  store: redisStore(url, { deadlineMs: 500, breakerFailures: 1 }),
  rules: [
    { id: "shared", key: [], algorithm: "rolling-window", limit: Number(limit), window: "1h", onStoreFailure: "local" },
  ],
});
await limiter.ready();
console.log("ready");

for await (const line of createInterface({ input: process.stdin })) {
  if (line === "end") break;
  let admitted = 0;
  let byPolicy = 0;
  for (let i = 0; i < Number(line.split(" ")[1]); i++) {
    const decision = await limiter.check({});
    if (decision.allowed) admitted++;
    if (decision.degraded === "local") byPolicy++;
  }
  console.log(JSON.stringify({ admitted, byPolicy }));
}
await limiter.close();
process.exit(0);
