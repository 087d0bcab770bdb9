/**
 * Receives alerts and checks that Sluice sent them, by Standard Webhooks: `webhook-signature` is `v1,BASE64`, the HMAC-SHA256 of
 * `ID.SECONDS.BODY` under the shared secret. Compare in constant time, and refuse messages that are older than five minutes: somebody may
 * have recorded them. The libraries of Standard Webhooks do the same in many languages (give them the secret as "raw").
 *
 *   ALERT_SECRET=a-secret-of-16-or-more node examples/alerts/receiver.mjs 9099
 *   npx sluice serve --alert-webhook http://127.0.0.1:9099/ --alert-secret a-secret-of-16-or-more --alert-allow-private true
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const secret = process.env.ALERT_SECRET ?? "";
const OLDEST_SECONDS = 300;

function isFromSluice(body, headers) {
  const { "webhook-id": id, "webhook-timestamp": seconds, "webhook-signature": signatures = "" } = headers;
  if (!/^\d{1,12}$/.test(seconds) || Math.abs(Date.now() / 1000 - Number(seconds)) > OLDEST_SECONDS) return false;
  const expected = createHmac("sha256", secret).update(`${id}.${seconds}.${body}`).digest();
  // There may be several, while a secret is replaced by another.
  return signatures.split(" ").some((one) => {
    const given = Buffer.from(one.replace(/^v1,/, ""), "base64");
    return given.length === expected.length && timingSafeEqual(expected, given);
  });
}

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  if (!isFromSluice(body, request.headers)) {
    console.log("refused: not signed by us, or too old");
    return response.writeHead(401).end();
  }
  // The same message may come twice: `webhook-id` tells.
  const { alert } = JSON.parse(body);
  console.log(`${alert.state} ${alert.severity} ${alert.subject}: ${alert.summary}`);
  response.writeHead(204).end();
});
server.listen(Number(process.argv[2] ?? 9099), "127.0.0.1", () => console.log(`listening on ${server.address().port}`));
