/** Sessions as a browser or an attacker would use them, over HTTP: the cookie, what it is bound to, and who may use it. */
import { createHash, createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sessionKey, signSession } from "../../packages/server/src/administration/sessions.js";
import { type Json, type RunningService, startTestService } from "../service/running-service.js";

const ADMIN = "the-admin-token-of-this-test";
let service: RunningService;

beforeAll(async () => {
  service = await startTestService({ settings: { "admin-token": ADMIN } });
});
afterAll(() => service.close());

interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  readonly to?: string;
}

async function call(path: string, { method = "GET", headers = {}, body, to = service.http }: Sent = {}) {
  const answer = await fetch(`${to}/admin/v1${path}`, {
    method,
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: (text === "" ? undefined : JSON.parse(text)) as Json };
}

/** What the dashboard's own pages send. */
const own = { "x-sluice-dashboard": "1", "sec-fetch-site": "same-origin" };
const bearer = { authorization: `Bearer ${ADMIN}` };

async function signIn(token: string, to = service.http): Promise<string> {
  const { status, headers } = await call("/session", { method: "POST", headers: own, body: { token }, to });
  expect(status).toBe(200);
  return headers.get("set-cookie")!.split(";")[0]!;
}

async function makeToken(name: string, role: string): Promise<string> {
  const { status, body } = await call("/tokens", { method: "POST", headers: bearer, body: { name, role } });
  expect(status).toBe(201);
  return body.token;
}

const rule = { key: ["user"], algorithm: "fixed-window", limit: 7, window: "1m" };

test("a token becomes a cookie that scripts cannot read and other sites do not send, and the token is not in it", async () => {
  const { headers, body } = await call("/session", { method: "POST", headers: own, body: { token: ADMIN } });
  expect(body).toEqual({ name: "admin", role: "admin" });
  const cookie = headers.get("set-cookie")!;
  expect(cookie).toMatch(/^sluice-session=[\w.-]+; Max-Age=43200; Path=\/admin; HttpOnly; SameSite=Strict$/);
  expect(cookie).not.toContain(ADMIN);
  expect(Buffer.from(cookie, "base64").toString()).not.toContain(ADMIN);
});

test("behind TLS that ends in front of the service the cookie is Secure", async () => {
  const headers = { ...own, origin: "https://limits.example" };
  const { headers: answered } = await call("/session", { method: "POST", headers, body: { token: ADMIN } });
  expect(answered.get("set-cookie")).toMatch(/; Secure; SameSite=Strict$/);
});

test("the cookie tells who is signed in and may do what its token may, until signing out takes it away", async () => {
  const cookie = await signIn(ADMIN);
  expect((await call("/session", { headers: { cookie } })).body).toEqual({ name: "admin", role: "admin" });
  const put = await call("/rules/by-cookie", { method: "PUT", headers: { cookie, ...own }, body: rule });
  expect(put.status).toBe(200);
  const out = await call("/session", { method: "DELETE", headers: { cookie, ...own } });
  expect(out.status).toBe(204);
  expect(out.headers.get("set-cookie")).toMatch(/^sluice-session=; Max-Age=0; Path=\/admin; HttpOnly/);
  expect((await call("/session")).status).toBe(401);
});

describe("what the cookie is bound to", () => {
  test("deleting the token ends its sessions", async () => {
    const cookie = await signIn(await makeToken("short-lived", "editor"));
    expect((await call("/session", { headers: { cookie } })).body).toEqual({ name: "short-lived", role: "editor" });
    await call("/tokens/short-lived", { method: "DELETE", headers: bearer });
    expect((await call("/session", { headers: { cookie } })).status).toBe(401);
    await makeToken("short-lived", "admin");
    expect((await call("/session", { headers: { cookie } })).status).toBe(401);
  });

  test("a session works on another instance that was given the same first token, and on none that was not", async () => {
    await using twin = await startTestService({ settings: { "admin-token": ADMIN } });
    await using stranger = await startTestService({ settings: { "admin-token": "another-admin-token-altogether" } });
    const cookie = await signIn(ADMIN);
    expect((await call("/session", { headers: { cookie }, to: twin.http })).status).toBe(200);
    expect((await call("/session", { headers: { cookie }, to: stranger.http })).status).toBe(401);
  });

  test("a value that was changed or made up is refused", async () => {
    const value = (await signIn(ADMIN)).split("=")[1]!;
    const [told, signature] = value.split(".") as [string, string];
    const claim = (name: string, endsAtMs: number) =>
      Buffer.from(JSON.stringify([name, endsAtMs, "made-by-this-test"])).toString("base64url");
    const soon = Date.now() + 3_600_000;
    const forged = [
      `${claim("admin", soon)}.${signature}`,
      `${told}.${"A".repeat(43)}`,
      `${told}.`,
      told,
      `${told}.${signature}.${signature}`,
      `${claim("nobody", soon)}.${createHmac("sha256", "").update(claim("nobody", soon)).digest("base64url")}`,
      `${Buffer.from("[1,2]").toString("base64url")}.${signature}`,
      `${Buffer.from("{}").toString("base64url")}.${signature}`,
      "x".repeat(5_000),
    ];
    for (const one of forged) {
      expect((await call("/session", { headers: { cookie: `sluice-session=${one}` } })).status, one).toBe(401);
    }
  });
});

test("a session that is over is refused, however well it is signed", async () => {
  const secrets = { key: sessionKey(ADMIN), tokenHash: createHash("sha256").update(ADMIN).digest() };
  const statusAt = async (endsAtMs: number) => {
    const cookie = `sluice-session=${signSession({ id: "made-by-this-test", name: "admin", endsAtMs }, secrets)}`;
    return (await call("/session", { headers: { cookie } })).status;
  };
  expect(await statusAt(Date.now() + 60_000)).toBe(200);
  expect(await statusAt(Date.now() - 1)).toBe(401);
});

describe("pages that are not the dashboard's", () => {
  const change = async (headers: Record<string, string>) =>
    await call("/rules/stolen", { method: "PUT", headers, body: rule });

  test.each([
    ["without the dashboard's header", { "sec-fetch-site": "same-origin" }],
    ["from another site", { ...own, "sec-fetch-site": "cross-site" }],
    ["from another port of the same host", { ...own, "sec-fetch-site": "same-site" }],
    ["from the address bar", { ...own, "sec-fetch-site": "none" }],
    [
      "with a foreign Origin, in a browser without Sec-Fetch-Site",
      { "x-sluice-dashboard": "1", origin: "https://evil.example" },
    ],
    ["with the Origin of a sandboxed frame", { "x-sluice-dashboard": "1", origin: "null" }],
    ["with neither Origin nor Sec-Fetch-Site", { "x-sluice-dashboard": "1" }],
  ])("a change %s is refused", async (_, headers) => {
    const cookie = await signIn(ADMIN);
    const { status, body } = await change({ cookie, ...(headers as Record<string, string>) });
    expect([status, body.code]).toEqual([403, "cross-origin"]);
    expect(service.rules.some(({ id }) => id === "stolen")).toBe(false);
  });

  test("reading is refused to them too, and nobody can be signed in or out by them", async () => {
    const cookie = await signIn(ADMIN);
    const foreign = { "x-sluice-dashboard": "1", "sec-fetch-site": "cross-site" };
    expect((await call("/rules", { headers: { cookie, ...foreign } })).status).toBe(403);
    expect((await call("/session", { method: "POST", headers: foreign, body: { token: ADMIN } })).status).toBe(403);
    expect((await call("/session", { method: "DELETE", headers: { cookie, ...foreign } })).status).toBe(403);
  });

  test("the Origin of the service itself passes in a browser without Sec-Fetch-Site", async () => {
    const cookie = await signIn(ADMIN);
    const { status } = await change({ cookie, "x-sluice-dashboard": "1", origin: service.http });
    expect(status).toBe(200);
  });

  test("a preflight gets no permission", async () => {
    const answer = await fetch(`${service.http}/admin/v1/rules/x`, {
      method: "OPTIONS",
      headers: { origin: "https://evil.example", "access-control-request-method": "PUT" },
    });
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
  });

  test("a token needs none of this: it is never sent by a browser on its own", async () => {
    expect((await change({ ...bearer, "sec-fetch-site": "cross-site" })).status).toBe(200);
  });
});

test("a viewer's session reads and explains, and changes nothing", async () => {
  const cookie = await signIn(await makeToken("reader", "viewer"));
  const headers = { cookie, ...own };
  expect((await call("/rules", { headers })).status).toBe(200);
  const explained = await call("/keys/explain", { method: "POST", headers, body: { attributes: { user: "u1" } } });
  expect(explained.body.decision.allowed).toBe(true);
  expect(explained.body.rules.some((one: Json) => one.rule === "starter-per-user" && one.matched)).toBe(true);
  const changes: [string, string, unknown?][] = [
    ["PUT", "/rules", { rules: [] }],
    ["PUT", "/rules/mine", rule],
    ["DELETE", "/rules/starter-per-user"],
    ["POST", "/rules/starter-per-user/promote"],
    ["POST", "/versions/1/rollback"],
    ["POST", "/keys/reset", { rule: "starter-per-user", attributes: { user: "u1" } }],
    ["POST", "/tokens", { name: "x", role: "admin" }],
  ];
  for (const [method, path, body] of changes) {
    expect((await call(path, { method, headers, body })).status, `${method} ${path}`).toBe(403);
  }
});

test("explaining charges nothing", async () => {
  const body = { attributes: { user: "only-looked-at" } };
  for (let i = 0; i < 20; i++) await call("/keys/explain", { method: "POST", headers: bearer, body });
  const { body: last } = await call("/keys/explain", { method: "POST", headers: bearer, body });
  expect(last.decision).toMatchObject({ allowed: true, rule: "starter-per-user", remaining: 5 });
});

test("after ten failed attempts of a minute an address is slowed, by sign-in and bearer alike; the right token passes at once", async () => {
  await using guarded = await startTestService({
    settings: { "admin-token": ADMIN, attributes: "attributes.yaml" },
    files: { "attributes.yaml": "trustedProxies: [loopback]\n" },
  });
  const to = guarded.http;
  const signingIn = (token: string, from: string) =>
    call("/session", { method: "POST", headers: { ...own, "x-forwarded-for": from }, body: { token }, to });
  const bearing = (token: string, from: string) =>
    call("/rules", { headers: { authorization: `Bearer ${token}`, "x-forwarded-for": from }, to });
  for (let i = 0; i < 5; i++) expect((await signingIn(ADMIN, "192.0.2.1")).status).toBe(200);
  for (let i = 0; i < 5; i++) {
    expect((await signingIn(`guess-${i}`, "192.0.2.1")).status).toBe(401);
    expect((await bearing(`guess-${i}`, "192.0.2.1")).status).toBe(401);
  }
  for (const attempt of [signingIn, bearing]) {
    const { status, body, headers } = await attempt("another-guess", "192.0.2.1");
    expect([status, body.code]).toEqual([429, "too-many-attempts"]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(headers.get("connection")).toBe("close");
    expect((await attempt(ADMIN, "192.0.2.1")).status).toBe(200);
    expect((await attempt("a-guess-from-elsewhere", "192.0.2.2")).status).toBe(401);
  }
});

test("a site's IPv6 addresses are one guesser: the whole /64, and not the next", async () => {
  await using guarded = await startTestService({
    settings: { "admin-token": ADMIN, attributes: "attributes.yaml" },
    files: { "attributes.yaml": "trustedProxies: [loopback]\nipv6Prefix: 128\n" },
  });
  const guess = async (from: string) =>
    (await call("/rules", { headers: { authorization: "Bearer guess", "x-forwarded-for": from }, to: guarded.http }))
      .status;
  for (let i = 0; i < 10; i++) expect(await guess(`2001:db8:0:1::${i}`)).toBe(401);
  expect(await guess("2001:db8:0:1:ffff::1")).toBe(429);
  expect(await guess("2001:db8:0:2::1")).toBe(401);
});

describe("signing out", () => {
  const out = (cookie: string, to = service.http) =>
    call("/session", { method: "DELETE", headers: { cookie, ...own }, to });
  const status = async (cookie: string, to = service.http) =>
    (await call("/session", { headers: { cookie }, to })).status;

  test("ends the session itself: a copy of its cookie is worth nothing, and other sessions of the token go on", async () => {
    const [stolen, other] = [await signIn(ADMIN), await signIn(ADMIN)];
    expect(await status(stolen)).toBe(200);
    expect((await out(stolen)).status).toBe(204);
    expect(await status(stolen)).toBe(401);
    expect((await out(stolen)).status).toBe(204);
    expect(await status(other)).toBe(200);
  });

  test("holds on every instance that shares the database, and after a restart", async () => {
    const database = `sqlite:${service.folder}/shared.db`;
    const settings = { "admin-token": ADMIN, database };
    await using one = await startTestService({ settings });
    const two = await startTestService({ settings });
    const cookie = await signIn(ADMIN, one.http);
    expect(await status(cookie, two.http)).toBe(200);
    await out(cookie, one.http);
    await expect.poll(() => status(cookie, two.http), { timeout: 10_000 }).toBe(401);
    await two.close();
    await using again = await startTestService({ settings });
    expect(await status(cookie, again.http)).toBe(401);
  });

  test("with rules from a file, holds in the data folder", async () => {
    const settings = { "admin-token": ADMIN, "data-folder": `${service.folder}/by-file` };
    const rules = [{ id: "r", ...rule }] as never;
    const first = await startTestService({ settings, rules });
    const cookie = await signIn(ADMIN, first.http);
    await out(cookie, first.http);
    expect(await status(cookie, first.http)).toBe(401);
    await first.close();
    await using again = await startTestService({ settings, rules });
    expect(await status(cookie, again.http)).toBe(401);
  });

  test("with a forged cookie ends nothing", async () => {
    const cookie = await signIn(ADMIN);
    const [told] = cookie.split("=")[1]!.split(".");
    expect((await out(`sluice-session=${told}.${"A".repeat(43)}`)).status).toBe(204);
    expect(await status(cookie)).toBe(200);
  });

  test("a live stream of the session ends", async () => {
    const cookie = await signIn(ADMIN);
    const stream = await fetch(`${service.http}/admin/v1/stats/stream`, { headers: { cookie } });
    expect(stream.status).toBe(200);
    await out(cookie);
    // Ends by itself: reading it to the end would else never come back.
    await stream.text();
  });
});

test("the history of one rule holds the versions that changed it", async () => {
  await call("/rules/told", { method: "PUT", headers: bearer, body: rule });
  await call("/rules/other", { method: "PUT", headers: bearer, body: rule });
  await call("/rules/told?message=tighter", { method: "PUT", headers: bearer, body: { ...rule, limit: 3 } });
  const { body } = await call("/versions?rule=told", { headers: bearer });
  expect(body.versions.map((one: Json) => one.summary)).toEqual(["1 changed", "1 added"]);
  expect(body.versions[0].message).toBe("tighter");
});
