/** Receivers of the alert policy against real servers on loopback: the documented shapes of each vendor, mail by SMTP with STARTTLS and AUTH. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";
import { Webhook } from "standardwebhooks";
import { afterEach, expect, test } from "vitest";
import { emptyPolicy, readAlertPolicy } from "../../packages/server/src/configuration/alert-policy.js";
import type { SmtpOptions } from "../../packages/server/src/monitoring/alerts/mail.js";
import { Receivers, type ReceiversOptions } from "../../packages/server/src/monitoring/alerts/receivers.js";
import type { AlertMessage } from "../../packages/server/src/monitoring/alerts/webhook-message.js";
import { makeCertificate } from "../harness/certificates.js";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever the vendor's documentation says.
  readonly body: any;
}

async function receiver(status = 202) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const { method, url, headers } = request;
    received.push({ method, url, headers, text, body: JSON.parse(text) });
    response.writeHead(status, { location: "http://127.0.0.1:9/" }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => server.close().closeAllConnections());
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function receiversOf(receivers: readonly object[], options: Partial<ReceiversOptions> = {}) {
  const said: string[] = [];
  const read = readAlertPolicy({ receivers }, { policy: emptyPolicy, secrets: {} });
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  const made = new Receivers({
    allowPrivate: true,
    pauseMs: 5,
    consoleUrl: "https://limits.example",
    log: { warn: (message, fields) => void said.push(`${message} ${JSON.stringify(fields)}`) },
    ...options,
  });
  made.follow({ version: 1, ...read });
  closers.push(() => made.close());
  return { receivers: made, said };
}

const alert: AlertMessage = {
  id: "a1",
  subject: "threshold:login:guard-login",
  kind: "threshold",
  condition: "login",
  rule: "guard-login",
  state: "firing",
  severity: "critical",
  summary: "login: 40 % of the checks are refused",
  startedAtMs: 1_700_000_000_000,
  value: 0.4,
  expected: 0.2,
};
const acknowledged: AlertMessage = {
  ...alert,
  event: "acknowledged",
  acknowledged: { by: "ada", atMs: 1, note: "mine" },
};
const over: AlertMessage = { ...alert, state: "resolved", endedAtMs: 1_700_000_600_000 };
const to = new Set(["one"]);

test("PagerDuty gets trigger, acknowledge and resolve of Events API v2 under one dedup_key", async () => {
  const { received, url } = await receiver();
  const key = "r0utingkey-of-32-characters-long";
  const { receivers } = receiversOf([{ id: "one", type: "pagerduty", key, url: `${url}/v2/enqueue` }]);
  for (const message of [alert, acknowledged, over]) expect(await receivers.tell(message, to)).toBe(true);
  expect(received.map(({ method, url: path }) => `${method} ${path}`)).toEqual(Array(3).fill("POST /v2/enqueue"));
  expect(received[0]!.body).toEqual({
    routing_key: key,
    event_action: "trigger",
    dedup_key: "sluice-a1",
    client: "Sluice",
    client_url: "https://limits.example/rules/guard-login",
    payload: {
      summary: "CRITICAL: login login: 40 % of the checks are refused",
      source: "sluice",
      severity: "critical",
      timestamp: "2023-11-14T22:13:20.000Z",
      component: "guard-login",
      class: "login",
      custom_details: expect.objectContaining({ rule: "guard-login", value: "0.4", expected: "0.2" }),
    },
  });
  expect(received.slice(1).map(({ body }) => body)).toEqual([
    { routing_key: key, event_action: "acknowledge", dedup_key: "sluice-a1" },
    { routing_key: key, event_action: "resolve", dedup_key: "sluice-a1" },
  ]);
});

test("Opsgenie gets create, acknowledge and close of its Alert API under one alias, with its key in the header alone", async () => {
  const { received, url } = await receiver();
  const key = "00000000-aaaa-bbbb-cccc-0123456789ab";
  const { receivers } = receiversOf([{ id: "one", type: "opsgenie", key, url }]);
  const long: AlertMessage = { ...alert, summary: "x".repeat(20_000) };
  for (const message of [long, acknowledged, over]) await receivers.tell(message, to);
  expect(received.map(({ method, url: path }) => `${method} ${path}`)).toEqual([
    "POST /v2/alerts",
    "POST /v2/alerts/sluice-a1/acknowledge?identifierType=alias",
    "POST /v2/alerts/sluice-a1/close?identifierType=alias",
  ]);
  for (const { headers, text } of received) {
    expect(headers.authorization).toBe(`GenieKey ${key}`);
    expect(text).not.toContain(key);
  }
  const [created, noted, closed] = received.map(({ body }) => body);
  expect(created).toMatchObject({
    alias: "sluice-a1",
    priority: "P1",
    entity: "guard-login",
    tags: ["sluice", "threshold"],
  });
  expect(created.message.length).toBeLessThanOrEqual(130);
  expect(created.description.length).toBeLessThanOrEqual(15_000);
  for (const detail of Object.values(created.details)) expect(detail).toBeTypeOf("string");
  expect(noted).toMatchObject({ user: "ada", source: "sluice", note: expect.stringContaining("by ada: mine") });
  expect(closed).toMatchObject({ source: "sluice", note: expect.stringContaining("after 10 min") });
});

test("a webhook's message is signed with its own secret, and each event has an id of its own", async () => {
  const { received, url } = await receiver(204);
  const secret = "a-secret-of-this-receiver";
  const { receivers } = receiversOf([{ id: "one", type: "webhook", url: `${url}/hook?k=1`, secret }]);
  for (const message of [alert, acknowledged, { ...alert, event: "reminder", sentAtMs: 7 } as const]) {
    await receivers.tell(message, to);
  }
  expect(received.map(({ headers }) => headers["webhook-id"])).toEqual([
    "a1-firing",
    "a1-firing-acknowledged",
    "a1-firing-reminder-7",
  ]);
  const verify = new Webhook(secret, { format: "raw" });
  for (const { text, headers } of received) verify.verify(text, headers as Record<string, string>);
  expect(received[1]!.body.alert).toMatchObject({ event: "acknowledged", acknowledged: { by: "ada", note: "mine" } });
});

test("Slack gets one text, in which a name can mention nobody", async () => {
  const { received, url } = await receiver(200);
  const { receivers } = receiversOf([{ id: "one", type: "slack", url: `${url}/services/T/B/x` }]);
  await receivers.tell({ ...alert, summary: "key <!channel> & more" }, to);
  expect(received[0]!.body).toEqual({ text: "*CRITICAL: login* key &lt;!channel&gt; &amp; more" });
});

test("a redirect is not followed, and a private address is refused unless it is allowed; no secret is in the log", async () => {
  const { received, url } = await receiver(302);
  const hook = { id: "one", type: "webhook", url: `${url}/path-secret`, secret: "signing-secret" };
  const redirected = receiversOf([hook]);
  await redirected.receivers.tell(alert, to);
  expect(received).toHaveLength(1);
  expect(redirected.receivers.states).toMatchObject([
    { id: "one", lastError: "answered 302: redirects are not followed; given up" },
  ]);
  const refused = receiversOf([hook], { allowPrivate: false });
  await refused.receivers.tell(alert, to);
  expect(received).toHaveLength(1);
  expect(refused.receivers.states[0]!.lastError).toContain("not public");
  expect(`${redirected.said} ${refused.said}`).not.toMatch(/path-secret|signing-secret/);
});

test("a receiver that changes gets a new lane, and one that is removed gets nothing", async () => {
  const [old, fresh] = [await receiver(), await receiver()];
  const { receivers } = receiversOf([{ id: "one", type: "webhook", url: old.url }]);
  await receivers.tell(alert, to);
  const policy = { ...emptyPolicy, receivers: [{ id: "one", type: "webhook" as const }] };
  receivers.follow({ version: 2, policy, secrets: { one: { url: fresh.url } } });
  await receivers.tell(over, to);
  receivers.follow({ version: 3, policy: emptyPolicy, secrets: {} });
  await receivers.tell(alert, to);
  expect([old.received.length, fresh.received.length]).toEqual([1, 1]);
});

interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  readonly user: string | undefined;
  readonly secure: boolean;
  readonly text: string;
}

async function mailServer(options: { answer?: Error; startTls?: boolean } = {}) {
  const mails: Mail[] = [];
  const { certFile, keyFile, ca } = makeCertificate();
  const server = new SMTPServer({
    key: readFileSync(keyFile),
    cert: readFileSync(certFile),
    ...(options.startTls === false && { disabledCommands: ["STARTTLS"], allowInsecureAuth: true }),
    authOptional: true,
    logger: false,
    onAuth: ({ username, password }, _session, done) =>
      password === "p@ss/word" ? done(null, { user: username ?? "" }) : done(new Error("no")),
    onData(stream, session, done) {
      let text = "";
      stream.on("data", (chunk: Buffer) => {
        text += chunk.toString("utf8");
      });
      stream.on("end", () => {
        if (options.answer !== undefined) return done(options.answer);
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false || mailFrom === undefined ? "" : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          user: session.user as string | undefined,
          secure: session.secure,
          text,
        });
        done();
      });
    },
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  closers.push(() => server.close());
  const { port } = server.server.address() as AddressInfo;
  const url = new URL(`smtp://bot:${encodeURIComponent("p@ss/word")}@127.0.0.1:${port}`);
  const smtp: SmtpOptions = { url, from: "Sluice <sluice@limits.example>", ca: ca.toString() };
  return { mails, smtp };
}

const byMail = { id: "one", type: "email", to: ["ops@example.org", "night@example.org"] };

test("mail goes out by STARTTLS and AUTH, and what a key is named adds no header", async () => {
  const { mails, smtp } = await mailServer();
  const { receivers } = receiversOf([byMail], { smtp });
  await receivers.tell({ ...alert, summary: "refused\r\nBcc: thief@example.org\r\n\r\nbody" }, to);
  expect(receivers.states).toEqual([{ id: "one", type: "email", lastSentAtMs: expect.any(Number) }]);
  expect(mails).toMatchObject([
    { from: "sluice@limits.example", to: ["ops@example.org", "night@example.org"], user: "bot", secure: true },
  ]);
  const [head, ...body] = mails[0]!.text.split("\r\n\r\n");
  expect(head).toMatch(/^Subject: \[Sluice\] CRITICAL: login refused Bcc: thief@example\.org body/m);
  expect(head).not.toMatch(/^Bcc:/m);
  expect(head).toMatch(/^Auto-Submitted: auto-generated/m);
  expect(body.join("\n")).toContain("https://limits.example/rules/guard-login");
});

test("a wrong password and a refusal of the server are final, and neither shows the password", async () => {
  const refusal = Object.assign(new Error("mailbox unavailable"), { responseCode: 550 });
  const { smtp } = await mailServer({ answer: refusal });
  const { receivers, said } = receiversOf([byMail], { smtp });
  await receivers.tell(alert, to);
  expect(receivers.states[0]!.lastError).toMatch(/^SMTP answered 550.*given up$/);
  const wrong = new URL(smtp.url);
  wrong.password = "not-the-password";
  const second = receiversOf([byMail], { smtp: { ...smtp, url: wrong } });
  await second.receivers.tell(alert, to);
  expect(second.receivers.states[0]!.lastError).toMatch(/^SMTP answered 535.*given up$/);
  expect(`${said} ${second.said}`).not.toMatch(/p@ss|not-the-password/);
});

test("without a mail server, and with one that accepts and never answers, the attempt ends and tells why", async () => {
  const none = receiversOf([byMail]);
  await none.receivers.tell(alert, to);
  expect(none.receivers.states[0]!.lastError).toContain("--smtp-url");
  const mute = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => mute.once("listening", resolve));
  closers.push(() => mute.close().closeAllConnections());
  const url = new URL(`smtp://127.0.0.1:${(mute.address() as AddressInfo).port}`);
  const { receivers } = receiversOf([byMail], { smtp: { url, from: "a@b.example", deadlineMs: 100 } });
  await expect(receivers.test("one", alert)).rejects.toThrow(/SMTP|no answer within/);
});
