/**
 * A caller that stays below a server's limits by itself: 12 requests to a server that takes 5 per second, and not one is refused.
 *
 *   node examples/client.mjs
 */
import { createServer } from "node:http";
import { createLimiter } from "sluice";
import { createFetch } from "sluice/client";
import { answerOf } from "sluice/http";

// A server without any framework: what `sluice/http` is for.
const limiter = createLimiter({
  rules: [{ id: "five-a-second", key: [], algorithm: "rolling-window", limit: 5, window: "1s" }],
});
let refusals = 0;
const server = createServer(async (_req, res) => {
  const { status, headers, body } = answerOf(await limiter.check({}));
  if (status !== 200) refusals++;
  res.writeHead(status, headers).end(body === undefined ? "ok\n" : JSON.stringify(body));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));

const pacedFetch = createFetch({ deadlineMs: 30_000 });
const startedMs = performance.now();
for (let i = 1; i <= 12; i++) {
  const response = await pacedFetch(`http://127.0.0.1:${server.address().port}`);
  const afterMs = Math.round(performance.now() - startedMs);
  console.log(
    `${String(i).padStart(2)}  ${response.status}  after ${afterMs} ms  ${response.headers.get("ratelimit")}`,
  );
}
console.log(`${refusals} refused`);
server.closeAllConnections();
server.close();
