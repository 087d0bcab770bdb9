/**
 * Uploads: two at a time, a million bytes a day. What a client announces is held before the first byte is read; what arrived is charged.
 * A body of unknown length holds a default, and asks for more while it grows: it is stopped where there is no more.
 *
 *   node examples/recipes/uploads.mjs
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createLimiter } from "sluice";
import { answerOf } from "sluice/http";
import { virtualClock } from "sluice/testing";
import { parse } from "yaml";

const { rules } = parse(readFileSync(new URL("uploads.yaml", import.meta.url), "utf8"));
// The clock stands still, so that this does not end a day in between. Leave it out in a program.
const limiter = createLimiter({ clock: virtualClock(), rules });
const STEP = 200_000;

const server = createServer(async (req, res) => {
  const announced = req.headers["content-length"];
  const length = announced === undefined ? {} : { content_length: Number(announced) };
  const decision = await limiter.check({ user: req.headers["x-user"], ...length });
  if (!decision.allowed) {
    const { status, headers, body } = answerOf(decision);
    // The body is not read: the connection ends with the answer.
    return res.writeHead(status, { ...headers, connection: "close" }).end(body.detail);
  }
  const { id, held } = decision.reservation;
  let [bytes, most] = [0, held["bytes-a-day"]];
  try {
    for await (const chunk of req) {
      bytes += chunk.length; // and written to where uploads go
      while (bytes > most && (await limiter.extend(id, { bytes_received: most + STEP })).allowed) most += STEP;
      if (bytes > most) break;
    }
  } finally {
    await limiter.settle(id, { bytes_received: Math.min(bytes, most) });
    await decision.lease.release();
  }
  if (bytes > most) res.writeHead(413, { connection: "close" }).end("no more bytes today");
  else res.end(`${bytes} bytes`);
});
await once(server.listen(0, "127.0.0.1"), "listening");
const url = `http://127.0.0.1:${server.address().port}/`;

async function upload(body) {
  try {
    const answer = await fetch(url, { method: "POST", body, headers: { "x-user": "ann" }, duplex: "half" });
    return `${answer.status} ${await answer.text()}`;
  } catch {
    return "cut off"; // the server answered and closed while the body was still on its way
  }
}
/** As a stream: fetch then sends it in chunks, without a length. */
async function* chunks(count, size) {
  for (let i = 0; i < count; i++) yield Buffer.alloc(size);
}
const left = async () => {
  const { checks } = await limiter.peek({ user: "ann" }, { cost: 0 });
  return checks.find(({ rule }) => rule === "bytes-a-day").remaining;
};

console.log(`announced: ${await upload(Buffer.alloc(300_000))}, ${await left()} left`);
console.log(`in chunks: ${await upload(chunks(5, 50_000))}, ${await left()} left`);
console.log(`announced, too large: ${(await upload(Buffer.alloc(500_000))).slice(0, 3)}, ${await left()} left`);
await upload(chunks(40, 50_000));
console.log(`in chunks, without end: stopped, ${await left()} left`);
server.closeAllConnections();
server.close();
await limiter.close();
