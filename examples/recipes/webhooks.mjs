/**
 * Webhooks, out and in. Out: deliveries to one endpoint take turns, however many workers send. In: events are limited by sender after
 * their signature was checked, and a sender that repeats an event is charged once.
 *
 *   node examples/recipes/webhooks.mjs
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createLimiter } from "sluice";
import { answerOf } from "sluice/http";
import { parse } from "yaml";

const { rules } = parse(readFileSync(new URL("webhooks.yaml", import.meta.url), "utf8"));
const limiter = createLimiter({ rules });
const secret = "shared with the sender";
const sign = (text) => createHmac("sha256", secret).update(text).digest("hex");

const received = [];
const server = createServer(async (req, res) => {
  let body = "";
  for await (const chunk of req) body += chunk;
  // The signature first: an unsigned stranger must not use up the sender's quota.
  const signature = Buffer.from(String(req.headers["x-signature"] ?? ""));
  const expected = Buffer.from(sign(body));
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) return res.writeHead(401).end();
  const { id, sender } = JSON.parse(body);
  const { status, headers } = answerOf(await limiter.check({ direction: "in", sender }, { id: `${sender} ${id}` }));
  if (status === 200) received.push(id);
  res.writeHead(status, headers).end();
});
await once(server.listen(0, "127.0.0.1"), "listening");
const endpoint = `http://127.0.0.1:${server.address().port}/`;

/** One delivery: waits for its turn, holds a connection of the endpoint while it sends. */
async function deliver(event) {
  const turn = await limiter.acquire({ direction: "out", endpoint });
  if (!turn.allowed) return "later"; // no free connection, or more than ten seconds of turns ahead: put it back into the queue
  try {
    const body = JSON.stringify(event);
    const { status } = await fetch(endpoint, { method: "POST", body, headers: { "x-signature": sign(body) } });
    return status;
  } finally {
    await turn.lease?.release();
  }
}

const sender = "shop";
const startedMs = performance.now();
for (const id of ["e1", "e2", "e3", "e3", "e3", "e4", "e5"]) await deliver({ id, sender });
const tookMs = performance.now() - startedMs;
console.log(`7 deliveries took turns, ${tookMs > 250 ? "more" : "less"} than 250 ms in all`);
const { remaining } = await limiter.peek({ direction: "in", sender });
console.log(`received ${received.join(" ")}: 5 events, ${5 - remaining} charged`);
console.log(`a sixth event: ${await deliver({ id: "e6", sender })}`);
const forged = await fetch(endpoint, { method: "POST", body: "{}", headers: { "x-signature": "0".repeat(64) } });
console.log(`a forged one: ${forged.status}`);
server.closeAllConnections();
server.close();
await limiter.close();
