/** Webhooks against real receivers on loopback: format, signature, retries, deadlines, addresses, secrets. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { afterEach, expect, test } from "vitest";
import type { Address } from "../../packages/server/src/monitoring/alerts/public-address.js";
import type { AlertMessage } from "../../packages/server/src/monitoring/alerts/webhook-message.js";
import { Webhooks, type WebhooksOptions } from "../../packages/server/src/monitoring/alerts/webhooks.js";
import { webhooks as acceptedWebhooks } from "../../packages/server/src/settings/accepted-settings.js";
import { eventually } from "../configuration/instance.js";

interface Received {
  readonly body: string;
  readonly headers: IncomingMessage["headers"];
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

type Answer = (count: number, response: ServerResponse) => void;
const ok: Answer = (_count, response) => response.writeHead(200).end("ok");

async function receiver(answer: Answer = ok, host = "127.0.0.1", port = 0) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push({ body, headers: request.headers });
    answer(received.length, response);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const { port: taken } = server.address() as AddressInfo;
  return { received, port: taken, url: `http://${host}:${taken}/hook?key=url-secret` };
}

function webhooksTo(text: string, options: Partial<WebhooksOptions> = {}) {
  const said: string[] = [];
  const webhooks = new Webhooks({
    webhooks: acceptedWebhooks.parse(text)!,
    allowPrivate: true,
    pauseMs: 10,
    log: { warn: (message, fields) => void said.push(`${message} ${JSON.stringify(fields)}`) },
    ...options,
  });
  return { webhooks, said };
}

const alert: AlertMessage = {
  id: "a1",
  subject: "store-memory",
  kind: "store-memory",
  state: "firing",
  severity: "critical",
  summary: "memory <!channel> & more",
  startedAtMs: 1_700_000_000_000,
};

test("the body is the alert, signed over time and body, so that a receiver can tell who sent it and when", async () => {
  const secret = "a-secret-for-the-signature";
  const { url, received } = await receiver();
  await webhooksTo(url, { secret }).webhooks.tell(alert);
  const { body, headers } = received[0]!;
  expect(JSON.parse(body)).toEqual({ type: "sluice.alert", alert });
  // As the reference library of Standard Webhooks reads it: it refuses wrong signatures, and messages that are too old.
  const reference = new Webhook(secret, { format: "raw" });
  expect(reference.verify(body, headers as Record<string, string>)).toEqual({ type: "sluice.alert", alert });
  expect(() => reference.verify(`${body} `, headers as Record<string, string>)).toThrow("No matching signature");
  expect(headers["webhook-id"]).toBe("a1-firing");

  // The header of older versions.
  const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers["sluice-signature"]))!;
  expect(Math.abs(Date.now() / 1_000 - Number(seconds))).toBeLessThan(60);
  const expected = createHmac("sha256", secret).update(`${seconds}.${body}`).digest();
  expect(timingSafeEqual(expected, Buffer.from(hex!, "hex"))).toBe(true);
  expect(expected.equals(createHmac("sha256", secret).update(`${seconds}.${body} `).digest())).toBe(false);
});

test("a secret in the form of Standard Webhooks is decoded, and every attempt at a message has the same id", async () => {
  const secret = `whsec_${Buffer.from("twenty-four bytes of it!").toString("base64")}`;
  const { url, received } = await receiver((count, response) => response.writeHead(count < 3 ? 503 : 204).end());
  await webhooksTo(url, { secret, pauseMs: 1 }).webhooks.tell(alert);
  expect(received).toHaveLength(3);
  expect(new Set(received.map(({ headers }) => headers["webhook-id"]))).toEqual(new Set(["a1-firing"]));
  for (const { body, headers } of received) new Webhook(secret).verify(body, headers as Record<string, string>);
});

test("Slack gets a text in which nothing can mention a channel", async () => {
  const { url, received } = await receiver();
  await webhooksTo(`slack+${url}`, { secret: "a-secret-for-the-signature" }).webhooks.tell(alert);
  expect(JSON.parse(received[0]!.body)).toEqual({
    text: "*CRITICAL: store-memory* memory &lt;!channel&gt; &amp; more",
  });
});

test("a receiver that fails is tried again until it has the message, once", async () => {
  const { url, received } = await receiver((count, response) => response.writeHead(count < 4 ? 500 : 204).end());
  const { webhooks } = webhooksTo(url);
  await webhooks.tell(alert);
  expect(received).toHaveLength(4);
  expect(new Set(received.map(({ body }) => body)).size).toBe(1);
  expect(webhooks.states[0]).toMatchObject({ lastSentAtMs: expect.any(Number) });
  expect(webhooks.states[0]).not.toHaveProperty("lastError");
});

test("what a receiver refuses for good is not sent again, and its answer is told", async () => {
  const { url, received } = await receiver((_count, response) => response.writeHead(404).end());
  const { webhooks } = webhooksTo(url);
  await webhooks.tell(alert);
  expect(received).toHaveLength(1);
  expect(webhooks.states[0]!.lastError).toBe("answered 404; given up");
});

test("a receiver that never works is given up after eight attempts", async () => {
  const { url, received } = await receiver((_count, response) => response.writeHead(503).end());
  const { webhooks } = webhooksTo(url, { pauseMs: 1 });
  await webhooks.tell(alert);
  expect(received).toHaveLength(8);
});

test("redirects are not followed", async () => {
  const target = await receiver();
  const { url } = await receiver((_count, response) => response.writeHead(302, { location: target.url }).end());
  const { webhooks } = webhooksTo(url);
  await webhooks.tell(alert);
  expect(target.received).toEqual([]);
  expect(webhooks.states[0]!.lastError).toContain("redirects are not followed");
});

test("a receiver that does not answer costs a deadline an attempt, and holds up nobody else", async () => {
  const silent = await receiver(() => undefined);
  const quick = await receiver();
  const { webhooks } = webhooksTo(`${silent.url},${quick.url}`, { deadlineMs: 200, pauseMs: 1 });
  const told = webhooks.tell(alert);
  await eventually("the other has it", () => quick.received.length === 1);
  await told;
  expect(silent.received.length).toBe(8);
  expect(webhooks.states.map(({ lastError }) => lastError)).toEqual(["no answer within 200 ms; given up", undefined]);
});

test("while a receiver hangs, at most a hundred messages wait for it", async () => {
  const { url, received } = await receiver(() => undefined);
  const { webhooks } = webhooksTo(url, { deadlineMs: 60_000 });
  let over = 0;
  for (let i = 0; i < 300; i++) void webhooks.tell({ ...alert, id: String(i) }).then(() => over++);
  await eventually("the rest was dropped", () => over === 199);
  await eventually("the first one is under way", () => received.length === 1);
  expect(webhooks.states[0]!.lastError).toContain("the oldest was dropped");
  webhooks.close();
  await eventually("closing gives up all that waits", () => over >= 299);
});

test("a private address is refused, whether it is written out or resolved, and never connected to", async () => {
  const { received, port, url } = await receiver();
  const resolve = async (): Promise<Address[]> => [{ address: "127.0.0.1", family: 4 }];
  for (const to of [url, `http://localhost:${port}/`, `http://hooks.example:${port}/`]) {
    const { webhooks } = webhooksTo(to, { allowPrivate: false, ...(to.includes("example") && { resolve }) });
    await webhooks.tell(alert);
    expect(webhooks.states[0]!.lastError, to).toMatch(/not public.*given up$/);
  }
  expect(received).toEqual([]);
});

test("the address that was judged is the one connected to: a name that resolves to another afterwards changes nothing", async () => {
  const judged = await receiver();
  const other = await receiver(ok, "127.0.0.2", judged.port);
  let asked = 0;
  const resolve = async (): Promise<Address[]> => [{ address: asked++ === 0 ? "127.0.0.1" : "127.0.0.2", family: 4 }];
  await webhooksTo(`http://hooks.example:${judged.port}/`, { resolve }).webhooks.tell(alert);
  expect([judged.received.length, other.received.length, asked]).toEqual([1, 0, 1]);
  expect(judged.received[0]!.headers.host).toBe(`hooks.example:${judged.port}`);
});

test("each attempt judges anew: a name that turns private between two attempts is refused", async () => {
  const { port, received } = await receiver();
  let asked = 0;
  const resolve = async (): Promise<Address[]> => {
    if (asked++ === 0) throw new Error("no answer from DNS");
    return [{ address: "127.0.0.1", family: 4 }];
  };
  const { webhooks } = webhooksTo(`http://hooks.example:${port}/`, { resolve, allowPrivate: false });
  await webhooks.tell(alert);
  expect(asked).toBe(2);
  expect(received).toEqual([]);
  expect(webhooks.states[0]!.lastError).toContain("127.0.0.1, which is not public");
});

test("neither the secret nor what a URL hides is logged or shown", async () => {
  const secret = "a-secret-for-the-signature";
  const { url } = await receiver((_count, response) => response.writeHead(500).end());
  const hidden = url.replace("http://", "http://login:password@");
  const { webhooks, said } = webhooksTo(hidden, { secret, pauseMs: 1 });
  await webhooks.tell(alert);
  const shown = JSON.stringify([webhooks.states, said]);
  expect(said.length).toBeGreaterThan(0);
  expect(shown).not.toMatch(/secret|login|password|\/hook/);
  expect(webhooks.states[0]!.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/…$/);
});

test.each(["ftp://x", "https://", "https://a,nonsense", "slack+ftp://x", ""])("%j is no list of webhooks", (text) => {
  expect(acceptedWebhooks.parse(text)).toBeUndefined();
});
