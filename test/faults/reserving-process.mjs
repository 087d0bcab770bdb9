/** Reserves a thousand times on the Redis that it is given, prints the ids, and waits to be killed. */
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";

const [url = "", rule = "{}"] = process.argv.slice(2);
const limiter = createLimiter({ store: redisStore(url, { deadlineMs: 30_000 }), rules: [JSON.parse(rule)] });
const decisions = await Promise.all(Array.from({ length: 1_000 }, () => limiter.check({ org: "acme" })));
process.stdout.write(`${JSON.stringify(decisions.map(({ reservation }) => reservation?.id))}\n`);
setInterval(() => {}, 1_000);
