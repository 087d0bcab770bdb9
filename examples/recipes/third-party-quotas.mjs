/**
 * The caller's side: many workers share the quota that a partner gives. They take turns below its rate, keep some of the day for what
 * matters, and believe the partner where it refuses all the same.
 *
 *   node examples/recipes/third-party-quotas.mjs
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createLimiter } from "sluice";
import { createFetch } from "sluice/client";
import { answerOf } from "sluice/http";
import { virtualClock } from "sluice/testing";
import { parse } from "yaml";

// The partner: 10 a second, and strict.
const theirs = createLimiter({
  rules: [{ id: "theirs", key: [], algorithm: "rolling-window", limit: 10, window: "1s" }],
});
let served = 0;
const partner = createServer(async (_req, res) => {
  const { status, headers } = answerOf(await theirs.check({}));
  if (status === 200) served++;
  res.writeHead(status, headers).end();
});
await once(partner.listen(0, "127.0.0.1"), "listening");
const url = `http://127.0.0.1:${partner.address().port}/`;

const { rules } = parse(readFileSync(new URL("third-party-quotas.yaml", import.meta.url), "utf8"));
// Shared by all workers of all machines: store: redisStore(url).
const ours = createLimiter({ rules });
// After a refusal it waits for Retry-After and tries again.
const patientFetch = createFetch({ deadlineMs: 30_000 });

async function call(purpose) {
  const turn = await ours.acquire({ api: "partner", purpose });
  if (!turn.allowed) return turn.rule;
  await patientFetch(url);
  return "called";
}

const answers = await Promise.all(Array.from({ length: 20 }, () => call("checkout")));
console.log(`20 calls at once: ${answers.filter((answer) => answer === "called").length} called, ${served} served`);

// Late in the day: background work has used up its share, and the rest is left to the checkout.
// With a clock that stands still, so that no midnight comes in between.
const day = createLimiter({ clock: virtualClock(), rules });
const isStopped = async (purpose, rule) => {
  const { violated } = await day.peek({ api: "partner", purpose });
  return violated.includes(rule);
};
await day.charge({ api: "partner", purpose: "background" }, { cost: 800 });
console.log(`background stopped: ${await isStopped("background", "leave-some-for-checkout")}`);
console.log(`checkout stopped: ${await isStopped("checkout", "partner-daily")}`);
partner.closeAllConnections();
partner.close();
await Promise.all([ours.close(), day.close(), theirs.close()]);
