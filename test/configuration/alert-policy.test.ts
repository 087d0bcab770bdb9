/** The alert policy over the admin API and the command, in a whole service: secrets, roles, versions, silences, test messages. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningService, startTestService } from "../service/running-service.js";
import type { AdminAnswer } from "./admin-answer.js";

const ADMIN = "an-admin-token-of-this-test";
const KEY = "r0uting-key-that-nobody-sees";
let service: RunningService;
const received: string[] = [];
const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  received.push(body);
  response.writeHead(202).end("{}");
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  service = await startTestService({
    settings: { "admin-token": ADMIN, "alert-allow-private": "true" },
  });
});
afterAll(async () => {
  await service.close();
  server.close();
});

const loopback = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

interface Call {
  readonly body?: unknown;
  readonly token?: string;
  readonly ifMatch?: number;
}

async function call(method: string, path: string, { body, token = ADMIN, ifMatch }: Call = {}) {
  const answer = await fetch(`${service.http}/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(ifMatch !== undefined && { "if-match": `"${ifMatch}"` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, text, body: (text === "" ? undefined : JSON.parse(text)) as AdminAnswer };
}

const policy = () => ({
  conditions: [{ id: "refusals", metric: "refused-share", above: 0.3, severity: "critical" }],
  receivers: [
    { id: "pager", type: "pagerduty", key: KEY, url: `${loopback()}/v2/enqueue` },
    { id: "chat", type: "slack", url: `${loopback()}/services/path-secret` },
  ],
  routes: [{ match: { severity: "critical" }, receivers: ["pager"], repeat: "4h" }, { receivers: ["chat"] }],
});

test("a policy is set, shown without its secrets, sent back as it was shown, and keeps them", async () => {
  expect((await call("GET", "/alerts/policy")).body).toMatchObject({ version: 0, receivers: [] });
  const put = await call("PUT", "/alerts/policy?message=first", { body: policy() });
  expect(put.status).toBe(200);
  expect(put.body).toMatchObject({
    version: 1,
    receivers: [
      { id: "pager", secrets: ["key"] },
      { id: "chat", address: `${loopback()}/…`, secrets: ["url"] },
    ],
  });
  const shown = await call("GET", "/alerts/policy");
  expect((await call("PUT", "/alerts/policy", { body: shown.body, ifMatch: 1 })).body.version).toBe(2);
  received.length = 0;
  expect((await call("POST", "/alerts/receivers/pager/test")).body).toEqual({ delivered: true });
  // A test leaves no incident open.
  expect(received.map((body) => JSON.parse(body))).toMatchObject([
    { routing_key: KEY, event_action: "trigger" },
    { routing_key: KEY, event_action: "resolve" },
  ]);
  const everything = [put, shown, await call("GET", "/alerts"), await call("GET", "/audit")];
  for (const { text } of everything) expect(text).not.toMatch(/r0uting|path-secret/);
});

test("a stored key is not sent to another address: a changed one asks for the key again", async () => {
  const { body } = await call("GET", "/alerts/policy");
  const moved = {
    ...body,
    receivers: [{ id: "pager", type: "pagerduty", url: "https://elsewhere.example/" }],
    routes: [],
  };
  const refused = await call("PUT", "/alerts/policy", { body: moved });
  expect(refused.status).toBe(400);
  expect(refused.body.mistakes).toEqual([
    { path: "receivers[0].key", message: expect.stringContaining("expected the key") },
  ]);
});

test("mistakes are all named with their places, secrets are not repeated in them, and nothing changes", async () => {
  const before = (await call("GET", "/alerts/policy")).body.version;
  const { status, body, text } = await call("PUT", "/alerts/policy", {
    body: {
      conditions: [
        { id: "A b", metric: "latency", above: 1 },
        { id: "x", metric: "checks", above: 1, below: 2, for: "90s" },
        { id: "y", metric: "refused-share", above: 20, rule: "a", tag: "b" },
      ],
      detectors: [{ kind: "unusual-rate", above: 0.5 }, { kind: "nothing" }],
      receivers: [
        { id: "m", type: "email", to: ["a@b.example\r\nBcc: c@d.example"] },
        { id: "w", type: "webhook", url: "ftp://user:hidden-secret@x" },
        { id: "z", type: "pigeon" },
      ],
      routes: [{ receivers: ["nobody"], repeat: "1s" }],
      extra: 1,
    },
  });
  expect(status).toBe(400);
  expect(body.mistakes.map(({ path }) => path)).toEqual([
    "conditions[0].id",
    "conditions[0].metric",
    "conditions[1].for",
    "conditions[1]",
    "conditions[2]",
    "conditions[2]",
    "detectors[0].above",
    "detectors[1].kind",
    "receivers[0].to[0]",
    "receivers[1].url",
    "receivers[2].type",
    "routes[0].repeat",
    "extra",
  ]);
  expect(text).not.toContain("hidden-secret");
  const unknown = await call("PUT", "/alerts/policy", { body: { routes: [{ receivers: ["nobody"] }] } });
  expect(unknown.body.mistakes).toEqual([{ path: "routes[0].receivers[0]", message: 'there is no receiver "nobody"' }]);
  expect((await call("GET", "/alerts/policy")).body.version).toBe(before);
});

test("of two editors with the same version one wins; roles are asked for; the audit names who", async () => {
  const { version } = (await call("GET", "/alerts/policy")).body;
  expect((await call("PUT", "/alerts/policy", { body: policy(), ifMatch: version })).status).toBe(200);
  expect((await call("PUT", "/alerts/policy", { body: policy(), ifMatch: version })).body).toMatchObject({
    code: "version-mismatch",
    currentVersion: version + 1,
  });
  const editor = (await call("POST", "/tokens", { body: { name: "ed", role: "editor" } })).body.token;
  const viewer = (await call("POST", "/tokens", { body: { name: "vi", role: "viewer" } })).body.token;
  for (const [method, path, token] of [
    ["PUT", "/alerts/policy", editor],
    ["POST", "/alerts/receivers/pager/test", editor],
    ["POST", "/alerts/silences", viewer],
    ["POST", "/alerts/x/acknowledge", viewer],
  ] as const) {
    expect((await call(method, path, { token, body: {} })).status, path).toBe(403);
  }
  const { entries } = (await call("GET", "/audit")).body;
  expect(entries.map(({ action }) => action)).toContain("alerts.changed");
});

test("a silence has an author, a reason and an end, and can be ended before it", async () => {
  const made = await call("POST", "/alerts/silences", {
    body: { match: { rule: "login" }, for: "2h", reason: "deploy" },
  });
  expect(made.status).toBe(201);
  expect(made.body.endsAtMs - made.body.createdAtMs).toBe(2 * 3_600_000);
  expect((await call("GET", "/alerts/silences")).body.silences).toMatchObject([
    { id: made.body.id, author: "admin", reason: "deploy", match: { rule: "login" } },
  ]);
  expect((await call("DELETE", `/alerts/silences/${made.body.id}`)).status).toBe(204);
  expect((await call("DELETE", `/alerts/silences/${made.body.id}`)).body.code).toBe("unknown-silence");
  expect((await call("GET", "/alerts/silences")).body.silences).toEqual([]);
  expect((await call("POST", "/alerts/silences", { body: { all: true, for: "100d" } })).status).toBe(400);
  expect((await call("POST", "/alerts/silences", { body: { all: true, for: "soon" } })).status).toBe(400);
  expect((await call("POST", "/alerts/nobody/acknowledge", { body: {} })).body.code).toBe("unknown-alert");
});

test("a silence that names nothing is a mistake; every alert is silenced only by all: true", async () => {
  for (const body of [{ for: "1h" }, { match: {}, for: "1h" }, { match: {}, all: false, for: "1h" }]) {
    const { status, body: problem } = await call("POST", "/alerts/silences", { body });
    expect([status, problem.code]).toEqual([400, "invalid-request"]);
    expect(problem.detail).toBe("match: expected rule, tag or kind, or all: true for every alert, got nothing");
  }
  const both = await call("POST", "/alerts/silences", { body: { match: { rule: "login" }, all: true, for: "1h" } });
  expect(both.body.detail).toContain("got both");
  expect((await call("GET", "/alerts/silences")).body.silences).toEqual([]);
  const made = await call("POST", "/alerts/silences", { body: { all: true, for: "1h" } });
  expect([made.status, made.body.match]).toEqual([201, {}]);
  await call("DELETE", `/alerts/silences/${made.body.id}`);
});
