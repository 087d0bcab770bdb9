/**
 * WebSockets: how many connections a user holds, how often they connect, and how much they say. The handshake is refused with 429 while it
 * is still HTTP; a message too many is answered and dropped; a client that goes on all the same is disconnected (1008).
 *
 *   node examples/recipes/websockets.mjs
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createLimiter } from "sluice";
import { answerOf } from "sluice/http";
import { parse } from "yaml";
import { accept, connect } from "./small-websocket.mjs";

const { rules } = parse(readFileSync(new URL("websockets.yaml", import.meta.url), "utf8"));
const limiter = createLimiter({ rules });
const MOST_WARNINGS = 3;

const server = createServer();
server.on("upgrade", async (req, stream) => {
  const user = req.headers["x-user"]; // of a session or a token, in a program
  const decision = await limiter.check({ event: "connect", user });
  if (!decision.allowed) {
    const { status, headers } = answerOf(decision);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    return stream.end(
      `HTTP/1.1 ${status} Too Many Requests\r\n${lines.join("")}connection: close\r\ncontent-length: 0\r\n\r\n`,
    );
  }
  const socket = accept(req, stream);
  const { lease } = decision;
  // A server that crashes stops renewing, and its places are free again after the lease's term.
  const renewal = setInterval(() => lease.renew().catch(() => {}), lease.expiresAfterMs / 3);
  socket.on("close", () => {
    clearInterval(renewal);
    lease.release().catch(() => {});
  });
  let warnings = 0;
  socket.on("message", async (data) => {
    const { allowed, rule, reason } = await limiter.check({ event: "message", user, size: data.length });
    if (allowed) return socket.send("heard");
    warnings++;
    if (warnings > MOST_WARNINGS) socket.close(1008, "too many messages");
    else socket.send(`${reason === "cost-exceeds-limit" ? "too large" : "too fast"}: ${rule}`);
  });
});
await once(server.listen(0, "127.0.0.1"), "listening");
const url = `http://127.0.0.1:${server.address().port}/`;

const first = await connect(url, { "x-user": "ann" });
const second = await connect(url, { "x-user": "ann" });
console.log(`a third connection: ${await connect(url, { "x-user": "ann" })}`);

const heard = [];
first.on("message", (text) => heard.push(String(text)));
// More bytes than a whole second allows, in one message.
first.send("x".repeat(1_500));
while (heard.length < 1) await once(first, "message");
console.log(`1500 bytes: ${heard[0]}`);

// As fast as it goes, whatever the server answers.
const flood = setInterval(() => {
  for (let i = 0; i < 50; i++) second.send("hello");
}, 1);
const [code] = await once(second, "close");
clearInterval(flood);
console.log(`flooding: disconnected with ${code}`);

const again = await connect(url, { "x-user": "bob" });
console.log("bob: connected");
again.close();
first.close();
await Promise.all([once(first, "close"), once(again, "close")]);
server.closeAllConnections();
server.close();
await limiter.close();
