/** People: tokens that expire and are seen to be used, the audit by person, rule and time, sessions listed and ended. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, type Instance, perUser, startInstance } from "./instance.js";

let instance: Instance;
const call: Instance["call"] = (...args) => instance.call(...args);

beforeAll(async () => {
  instance = await startInstance({ starterRules: [perUser(100)] });
});
afterAll(() => instance.stop());

const page = { "x-sluice-dashboard": "1", "sec-fetch-site": "same-origin", "user-agent": "Browser/1" };

async function make(name: string, role: string, expiresIn?: string): Promise<string> {
  return (await call("POST", "/tokens", { body: { name, role, ...(expiresIn && { expiresIn }) } })).body.token;
}

async function signIn(token: string): Promise<string> {
  const reply = await instance.app.inject({
    method: "POST",
    url: "/admin/v1/session",
    headers: { ...page, host: "x" },
    payload: { token },
  });
  return String(reply.headers["set-cookie"]).split(";")[0]!;
}

async function withCookie(cookie: string, method: "GET" | "DELETE", path: string) {
  return await instance.app.inject({ method, url: `/admin/v1${path}`, headers: { ...page, host: "x", cookie } });
}

test("a token works until it expires, and its sessions end with it", async () => {
  const token = await make("brief", "viewer", "2s");
  const cookie = await signIn(token);
  expect((await call("GET", "/rules", { token })).status).toBe(200);
  expect((await withCookie(cookie, "GET", "/rules")).statusCode).toBe(200);
  const { tokens } = (await call("GET", "/tokens")).body;
  const { expiresAt } = tokens.find(({ name }) => name === "brief")!;
  await sleep(Math.max(0, Date.parse(expiresAt) - Date.now() + 50));
  expect((await call("GET", "/rules", { token })).status).toBe(401);
  expect((await withCookie(cookie, "GET", "/rules")).statusCode).toBe(401);
});

test("the last use of a token is shown, and none where it was never used", async () => {
  const token = await make("used", "viewer");
  await make("idle", "viewer");
  await call("GET", "/rules", { token });
  await eventually("it is noted", async () => {
    const { tokens } = (await call("GET", "/tokens")).body;
    return tokens.find(({ name }) => name === "used")!.lastUsedAt !== undefined;
  });
  const { tokens } = (await call("GET", "/tokens")).body;
  expect(tokens.find(({ name }) => name === "idle")!.lastUsedAt).toBeUndefined();
  expect((await call("POST", "/tokens", { body: { name: "no", role: "viewer", expiresIn: "-1s" } })).status).toBe(400);
});

test("the audit is filtered by person, by rule and by time, page by page", async () => {
  const editor = await make("ed", "editor");
  await call("PUT", "/rules/per_user.b", { body: { ...perUser(5), id: "per_user.b" }, token: editor });
  await call("PUT", "/rules/perXuser.b", { body: { ...perUser(5), id: "perxuser.b" } });
  await call("PUT", "/rules/perxuser.b", { body: { ...perUser(6), id: "perxuser.b" } });
  await call("POST", "/keys/reset", { body: { rule: "per_user.b", attributes: { user: "u" } } });
  const actions = async (query: string) =>
    (await call("GET", `/audit?${query}`)).body.entries.map(({ actor, action }) => `${actor} ${action}`);
  expect(await actions("rule=per_user.b")).toEqual(["admin key.reset", "ed rules.changed"]);
  expect(await actions("rule=per_user.b&actor=ed")).toEqual(["ed rules.changed"]);
  expect(await actions(`from=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([]);
  expect((await actions(`to=${new Date(Date.now() + 60_000).toISOString()}&limit=2`)).length).toBe(2);
  // Text, not a statement.
  expect(await actions(`actor=${encodeURIComponent("x' OR '1'='1")}`)).toEqual([]);
  expect(await actions("rule=%25")).toEqual([]);
  expect((await call("GET", "/audit?from=yesterday")).body.detail).toContain("from: expected a time");
});

test("the audit comes as a file, in which no cell is a formula", async () => {
  await instance.configuration.repository!.record({
    actor: '=HYPERLINK("http://evil.example")',
    action: "key.reset",
    target: 'a,"b"\nc',
    details: {},
  });
  const csv = await instance.app.inject({
    method: "GET",
    url: "/admin/v1/audit/export",
    headers: { authorization: "Bearer an-admin-token-for-tests", host: "x" },
  });
  expect(csv.headers["content-disposition"]).toBe('attachment; filename="sluice-audit.csv"');
  expect(csv.headers["content-type"]).toContain("text/csv");
  const [head, ...lines] = csv.body.split("\r\n");
  expect(head).toBe("id,at,actor,action,target,details");
  expect(lines[0]).toMatch(/,"'=HYPERLINK\(""http:\/\/evil\.example""\)",key\.reset,"a,""b""\nc",\{\}$/);
  const json = (await call("GET", "/audit/export?format=json&actor=ed")).body.entries;
  expect(json.every(({ actor }) => actor === "ed")).toBe(true);
  expect(json.length).toBeGreaterThan(0);
});

test("sessions are listed with their browser; one's own can be ended, and everybody's by an admin", async () => {
  const [one, two] = [await make("one", "viewer"), await make("two", "viewer")];
  const [ofOne, ofTwo] = [await signIn(one), await signIn(two)];
  await eventually("both are noted", async () => {
    const names = (await call("GET", "/sessions")).body.sessions.map(({ name }) => name);
    return names.includes("one") && names.includes("two");
  });
  const seen = JSON.parse((await withCookie(ofOne, "GET", "/sessions")).body).sessions;
  expect(seen).toMatchObject([{ name: "one", agent: "Browser/1", own: true }]);
  const { sessions } = (await call("GET", "/sessions")).body;
  const idOf = (name: string): string => sessions.find((session) => session.name === name)!.id;
  expect((await withCookie(ofOne, "DELETE", `/sessions/${idOf("two")}`)).statusCode).toBe(404);
  expect((await withCookie(ofTwo, "GET", "/rules")).statusCode).toBe(200);
  expect((await call("DELETE", `/sessions/${idOf("two")}`)).status).toBe(204);
  expect((await withCookie(ofTwo, "GET", "/rules")).statusCode).toBe(401);
  expect((await withCookie(ofOne, "GET", "/rules")).statusCode).toBe(200);
  expect((await withCookie(ofOne, "DELETE", `/sessions/${idOf("one")}`)).statusCode).toBe(204);
  expect((await withCookie(ofOne, "GET", "/rules")).statusCode).toBe(401);
});
