/**
 * Receives alerts and checks that Sluice sent them. The signature is `t=SECONDS,v1=HEX`: the HMAC-SHA256 of `SECONDS.BODY` under the shared
 * secret. Compare in constant time, and refuse messages that are older than five minutes: somebody may have recorded them.
 *
 *   ALERT_SECRET=a-secret-of-16-or-more node examples/alerts/receiver.mjs 9099
 *   npx sluice serve --alert-webhook http://127.0.0.1:9099/ --alert-secret a-secret-of-16-or-more --alert-allow-private true
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const secret = process.env.ALERT_SECRET ?? "";
const OLDEST_SECONDS = 300;

function isFromSluice(body, header = "") {
  const [, seconds, hex] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(header) ?? [];
  if (seconds === undefined || Math.abs(Date.now() / 1000 - Number(seconds)) > OLDEST_SECONDS) return false;
  const expected = createHmac("sha256", secret).update(`${seconds}.${body}`).digest();
  return timingSafeEqual(expected, Buffer.from(hex, "hex"));
}

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  if (!isFromSluice(body, request.headers["sluice-signature"])) {
    console.log("refused: not signed by us, or too old");
    return response.writeHead(401).end();
  }
  // The same alert may come twice; `alert.id` with `alert.state` tells.
  const { alert } = JSON.parse(body);
  console.log(`${alert.state} ${alert.severity} ${alert.subject}: ${alert.summary}`);
  response.writeHead(204).end();
});
server.listen(Number(process.argv[2] ?? 9099), "127.0.0.1", () => console.log(`listening on ${server.address().port}`));
