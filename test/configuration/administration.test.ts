/** The admin API as its users see it, on the embedded default: SQLite and memory. */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_DOCUMENT_BYTES } from "../../packages/server/src/configuration/document-text.js";
import { ADMIN_TOKEN, type Instance, perUser, startInstance } from "./instance.js";

let instance: Instance;
const call: Instance["call"] = (...args) => instance.call(...args);

beforeAll(async () => {
  instance = await startInstance({ starterRules: [perUser(100)] });
});
afterAll(() => instance.stop());

describe("rules", () => {
  test("an empty database begins with the starter rules, as version 1", async () => {
    const { status, body, headers } = await call("GET", "/rules");
    expect(status).toBe(200);
    expect(headers.etag).toBe('"1"');
    expect(body).toEqual({ version: 1, rules: [perUser(100)] });
    expect((await call("GET", "/versions")).body.versions).toMatchObject([
      { version: 1, author: "sluice", message: "starter rules", summary: "1 added" },
    ]);
  });

  test("a changed rule is in force when the answer comes, with a new version and what changed", async () => {
    const before = (await call("GET", "/rules")).body.version;
    const { status, body, headers } = await call("PUT", "/rules/per-user?message=more", { body: perUser(200) });
    expect(status).toBe(200);
    expect(headers.etag).toBe(`"${before + 1}"`);
    expect(body).toMatchObject({ version: before + 1, changed: true, diff: { changed: 1 } });
    expect(body.text).toBe("~ per-user\n    limit: 100 -> 200\n1 changed");
    expect(instance.limiter.rules).toEqual([perUser(200)]);
    expect(instance.limiter.rulesVersion).toBe(before + 1);
  });

  test("a listener that does not take the new rules is told of in the status, and the next one that it takes clears it", async () => {
    const own = await startInstance({ starterRules: [perUser(1)] });
    const stop = own.configuration.onChange(async () => {
      throw new Error("an id is used twice");
    });
    await own.call("PUT", "/rules", { body: [perUser(2)] });
    expect(own.configuration.status().lastError).toBe("version 2 is not enforced: an id is used twice");
    stop();
    await own.call("PUT", "/rules", { body: [perUser(3)] });
    expect(own.configuration.status().lastError).toBeUndefined();
    await own.stop();
  });

  test("a change that changes nothing makes no version", async () => {
    const { body } = await call("PUT", "/rules", { body: { rules: [perUser(200)] } });
    expect(body).toMatchObject({ changed: false, text: "no difference" });
    expect((await call("GET", "/rules")).body.version).toBe(body.version);
  });

  test("a rule is added under the id of its path, read alone and deleted", async () => {
    const { id: _, ...unnamed } = perUser(5);
    expect((await call("PUT", "/rules/second", { body: unnamed })).status).toBe(200);
    expect((await call("GET", "/rules/second")).body).toEqual({ ...perUser(5), id: "second" });
    expect((await call("PUT", "/rules/second", { body: perUser(5) })).body).toMatchObject({ code: "invalid-request" });
    expect((await call("DELETE", "/rules/second")).status).toBe(200);
    expect((await call("GET", "/rules/second")).body).toMatchObject({ status: 404, code: "unknown-rule" });
    expect((await call("DELETE", "/rules/second")).body).toMatchObject({ status: 404, code: "unknown-rule" });
  });

  test("a dry run tells the difference and changes nothing", async () => {
    const before = (await call("GET", "/rules")).body;
    const { status, body } = await call("PUT", "/rules?dryRun=true", {
      body: [perUser(1), { ...perUser(2), id: "b" }],
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ version: before.version, changed: false, diff: { added: 1, changed: 1 } });
    expect((await call("GET", "/rules")).body).toEqual(before);
  });

  test("of two editors with the same version one wins, the other gets 412 and the difference", async () => {
    const { version } = (await call("GET", "/rules")).body;
    const guard = { headers: { "if-match": `"${version}"` } };
    const edits = [perUser(301), { ...perUser(302), onStoreFailure: "deny" as const }];
    const replies = await Promise.all(edits.map((body) => call("PUT", "/rules/per-user", { body, ...guard })));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 412]);
    const lost = replies.find(({ status }) => status === 412)!.body;
    expect(lost).toMatchObject({ code: "version-mismatch", currentVersion: version + 1, diff: { changed: 1 } });
    expect(lost.diff.changes[0]!.fields![0]).toMatchObject({ path: "limit", from: 200 });
  });

  test("fifty edits of different rules without If-Match, all at once, are all kept", async () => {
    const ids = Array.from({ length: 50 }, (_, i) => `at-once-${i}`);
    const edits = ids.map((id) => call("PUT", `/rules/${id}`, { body: { ...perUser(1), id } }));
    expect((await Promise.all(edits)).map(({ status }) => status)).toEqual(Array(50).fill(200));
    const { rules } = (await call("GET", "/rules")).body;
    expect(rules.map(({ id }: Rule) => id).sort()).toEqual(["per-user", ...ids].sort());
    await call("PUT", "/rules", { body: [perUser(200)] });
  });

  test("what GET /rules answered can be sent back, and its version then guards the change", async () => {
    const read = (await call("GET", "/rules")).body;
    await call("PUT", "/rules/per-user", { body: perUser(11) });
    expect((await call("PUT", "/rules", { body: read })).status).toBe(412);
    const again = (await call("GET", "/rules")).body;
    expect((await call("PUT", "/rules", { body: { ...again, rules: [perUser(12)] } })).status).toBe(200);
  });

  test("promoting makes the candidate's numbers the live ones and drops the candidate", async () => {
    const rule = {
      ...perUser(10),
      overrides: [{ match: { user: "acme" }, limit: 9, align: "epoch" as const }],
      candidate: { algorithm: "gcra" as const, limit: 7, burst: 3 },
    } as Rule;
    await call("PUT", "/rules/per-user", { body: rule });
    expect((await call("POST", "/rules/per-user/promote")).status).toBe(200);
    expect((await call("GET", "/rules/per-user")).body).toEqual({
      id: "per-user",
      key: ["user"],
      algorithm: "gcra",
      limit: 7,
      window: "1h",
      burst: 3,
      overrides: [{ match: { user: "acme" }, limit: 9 }],
    });
    expect((await call("POST", "/rules/per-user/promote")).body).toMatchObject({ status: 409, code: "no-candidate" });
    expect((await call("POST", "/rules/none/promote")).body).toMatchObject({ status: 404, code: "unknown-rule" });
  });

  test("rolling back brings an old document back as a new version, and the history keeps both", async () => {
    await call("PUT", "/rules", { body: [perUser(21)] });
    const { version } = (await call("GET", "/rules")).body;
    await call("PUT", "/rules", { body: [perUser(22)] });
    const { body } = await call("POST", `/versions/${version}/rollback`);
    expect(body).toMatchObject({ version: version + 2, changed: true });
    expect(instance.limiter.rules).toEqual([perUser(21)]);
    expect((await call("GET", `/versions/${version + 2}`)).body).toMatchObject({
      kind: "rollback",
      author: "admin",
      message: `roll back to version ${version}`,
      rules: [perUser(21)],
      text: "~ per-user\n    limit: 22 -> 21\n1 changed",
    });
    expect((await call("POST", "/versions/9999/rollback")).body).toMatchObject({
      status: 404,
      code: "unknown-version",
    });
    expect((await call("GET", "/versions/9999")).status).toBe(404);
  });

  test("the history is paged from the newest to the first", async () => {
    const seen: number[] = [];
    for (let next: number | undefined, more = true; more; ) {
      const { body } = await call("GET", `/versions?limit=7${next === undefined ? "" : `&before=${next}`}`);
      seen.push(...body.versions.map((one) => one.version));
      next = body.next;
      more = next !== undefined;
    }
    const { version } = (await call("GET", "/rules")).body;
    expect(seen).toEqual(Array.from({ length: version }, (_, i) => version - i));
  });
});

describe("keys", () => {
  test("a reset forgets one key, literally, and is audited with its author", async () => {
    await call("PUT", "/rules", { body: [perUser(1)] });
    for (const user of ["ann", "bob", "*"]) {
      await instance.limiter.check({ user });
      expect((await instance.limiter.check({ user })).allowed).toBe(false);
    }
    expect((await call("POST", "/keys/reset", { body: { rule: "per-user", attributes: { user: "*" } } })).body).toEqual(
      {
        reset: true,
      },
    );
    expect((await instance.limiter.peek({ user: "*" })).allowed).toBe(true);
    expect((await instance.limiter.peek({ user: "ann" })).allowed).toBe(false);
    const { body } = await call("GET", "/audit?limit=1");
    expect(body.entries).toMatchObject([
      { actor: "admin", action: "key.reset", target: "per-user", details: { attributes: { user: "*" } } },
    ]);
    const unknown = await call("POST", "/keys/reset", { body: { rule: "none", attributes: {} } });
    expect(unknown.body).toMatchObject({ status: 404, code: "unknown-rule" });
    const incomplete = await call("POST", "/keys/reset", { body: { rule: "per-user", attributes: {} } });
    expect(incomplete.body).toMatchObject({ status: 400, code: "invalid-request" });
  });
});

describe("tokens", () => {
  const roles = ["viewer", "editor", "admin"] as const;
  const tokens: Record<string, string> = {};

  test("a token is shown once, stored hashed, and named tokens act under their names", async () => {
    for (const role of roles) {
      const { status, body } = await call("POST", "/tokens", { body: { name: `a-${role}`, role } });
      expect(status).toBe(201);
      expect(body).toMatchObject({ name: `a-${role}`, role });
      tokens[role] = body.token;
    }
    const listed = (await call("GET", "/tokens")).body;
    expect(listed.tokens.map(({ name }) => name)).toEqual(["a-admin", "a-editor", "a-viewer"]);
    const stored = JSON.stringify(await instance.configuration.repository!.tokens());
    for (const token of Object.values(tokens)) {
      expect(JSON.stringify(listed)).not.toContain(token);
      expect(stored).not.toContain(token);
    }
    await call("PUT", "/rules/per-user", { body: perUser(77), token: tokens.editor });
    expect((await call("GET", "/versions?limit=1")).body.versions[0]!.author).toBe("a-editor");
    expect((await call("POST", "/tokens", { body: { name: "a-viewer", role: "admin" } })).body.code).toBe(
      "token-exists",
    );
    expect((await call("POST", "/tokens", { body: { name: "admin", role: "viewer" } })).body.code).toBe("token-exists");
    const { body: mistake } = await call("POST", "/tokens", { body: { name: "x", role: "root" } });
    expect(mistake).toMatchObject({ code: "invalid-request" });
    for (const word of ["body.role", "viewer", "editor", "admin", "root"]) expect(mistake.detail).toContain(word);
  });

  /** Every route, with a request that a sufficient role gets through. */
  const endpoints = [
    { method: "GET", path: "/rules", least: "viewer" },
    { method: "GET", path: "/rules/per-user", least: "viewer" },
    { method: "PUT", path: "/rules", least: "editor", body: [perUser(1)] },
    { method: "PUT", path: "/rules?dryRun=true", least: "editor", body: [perUser(2)] },
    { method: "PUT", path: "/rules/per-user", least: "editor", body: { ...perUser(1), candidate: { limit: 3 } } },
    { method: "POST", path: "/rules/per-user/promote", least: "editor" },
    { method: "DELETE", path: "/rules/per-user", least: "editor" },
    { method: "GET", path: "/versions", least: "viewer" },
    { method: "GET", path: "/versions/1", least: "viewer" },
    { method: "POST", path: "/versions/1/rollback", least: "editor" },
    { method: "GET", path: "/audit", least: "viewer" },
    { method: "GET", path: "/audit/export?format=json", least: "viewer" },
    { method: "GET", path: "/timeline?from=1&to=2", least: "viewer" },
    { method: "POST", path: "/rules", least: "editor", body: { ids: ["per-user"], mode: "shadow" } },
    { method: "GET", path: "/sessions", least: "viewer" },
    // Everybody ends sessions of their own; of this one nobody is.
    { method: "DELETE", path: "/sessions/none", least: "viewer", status: 404, code: "unknown-session" },
    { method: "POST", path: "/keys/reset", least: "editor", body: { rule: "per-user", attributes: { user: "x" } } },
    {
      method: "POST",
      path: "/keys/block",
      least: "editor",
      body: { rule: "per-user", attributes: { user: "x" }, for: "1s" },
    },
    { method: "POST", path: "/keys/explain", least: "viewer", body: { attributes: { user: "x" } } },
    { method: "GET", path: "/session", least: "viewer" },
    { method: "GET", path: "/tokens", least: "admin" },
    { method: "POST", path: "/tokens", least: "admin", body: { name: "matrix", role: "viewer" } },
    { method: "DELETE", path: "/tokens/matrix", least: "admin" },
    { method: "DELETE", path: "/tokens?name=matrix", least: "admin" },
    // This instance counts nothing; what the routes tell of one that does is test/monitoring's.
    { method: "GET", path: "/stats", least: "viewer", status: 404 },
    { method: "GET", path: "/stats/stream", least: "viewer", status: 404 },
    { method: "GET", path: "/regions", least: "viewer", status: 404 },
    { method: "GET", path: "/spend", least: "viewer", status: 404 },
    { method: "GET", path: "/load", least: "viewer", status: 404 },
    { method: "GET", path: "/keys/top", least: "viewer", status: 404 },
    { method: "POST", path: "/keys/history", least: "viewer", body: { attributes: { user: "x" } }, status: 404 },
  ] as const;

  /** Signing in and out, and the ways to; `test/dashboard/sign-in.test.ts` asks these. */
  const open = ["POST /session", "DELETE /session", "GET /session/methods"];

  test("every route of the API stands in the matrix of roles", async () => {
    const routes: string[] = [];
    const collecting = await startInstance({
      prepare: async (app) => {
        app.addHook("onRoute", ({ method, url, path }) => {
          if (method !== "HEAD") routes.push(`${String(method)} ${url ?? path}`);
        });
      },
    });
    await collecting.app.ready();
    await collecting.stop();
    const known = new Set([...open, ...endpoints.map(({ method, path }) => `${method} ${spelled(path)}`)]);
    expect([...new Set(routes)].sort()).toEqual([...known].map((one) => one.replace(" /", " /admin/v1/")).sort());
  });

  test.each(endpoints.flatMap((endpoint) => ["stranger", "nobody", ...roles].map((who) => ({ ...endpoint, who }))))(
    "$who asks $method $path",
    async ({ method, path, least, who, ...rest }) => {
      await call("PUT", "/rules", { body: [{ ...perUser(50), blockFor: "1m", candidate: { limit: 40 } }] });
      if (path !== "/tokens") await call("POST", "/tokens", { body: { name: "matrix", role: "viewer" } });
      else await call("DELETE", "/tokens/matrix");
      const token = who === "nobody" ? "" : who === "stranger" ? `${ADMIN_TOKEN}x` : tokens[who];
      const body = "body" in rest ? { body: rest.body } : {};
      const reply = await call(method, path, { token, ...body });
      const rank = roles.indexOf(who as (typeof roles)[number]);
      if (rank < 0) expect(reply).toMatchObject({ status: 401, body: { code: "unauthorized" } });
      else if (rank < roles.indexOf(least)) expect(reply).toMatchObject({ status: 403, body: { code: "forbidden" } });
      else if ("status" in rest) {
        const code = "code" in rest ? rest.code : "monitoring-off";
        expect(reply).toMatchObject({ status: rest.status, body: { code } });
      } else expect(reply.status).toBeLessThan(300);
      if (reply.status >= 400) expect(reply.headers["content-type"]).toMatch(/^application\/problem\+json/);
    },
  );

  test("a call without a body may name a content type all the same", async () => {
    const headers = { "content-type": "application/json" };
    await call("PUT", "/rules", { body: [{ ...perUser(50), candidate: { limit: 40 } }] });
    await call("POST", "/tokens", { body: { name: "bodiless", role: "viewer" } });
    expect((await call("POST", "/rules/per-user/promote", { headers })).body).toMatchObject({ changed: true });
    expect((await call("DELETE", "/tokens/bodiless", { headers })).status).toBe(204);
    expect((await call("POST", "/versions/1/rollback", { headers })).status).toBe(200);
    const missing = await call("POST", "/tokens", { headers });
    expect(missing).toMatchObject({ status: 400, body: { code: "invalid-request" } });
    expect(missing.body.detail).toBe("body: expected JSON, got nothing");
    expect((await call("GET", "/versions/abc")).body.detail).toBe(
      'params.version: expected a whole number of at most 15 digits, got "abc"',
    );
  });

  test("a deleted token no longer works", async () => {
    expect((await call("GET", "/rules", { token: tokens.viewer })).status).toBe(200);
    expect((await call("DELETE", "/tokens/a-viewer")).status).toBe(204);
    expect((await call("GET", "/rules", { token: tokens.viewer })).status).toBe(401);
    expect((await call("DELETE", "/tokens/a-viewer")).body).toMatchObject({ status: 404, code: "unknown-token" });
  });

  test("the first token is made once, in a file that only its owner can read, and works over a restart", async () => {
    const first = await startInstance({ ownToken: true });
    const file = join(first.dataFolder, "admin-token");
    const { readFileSync } = await import("node:fs");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const token = readFileSync(file, "utf8").trim();
    expect(token).toMatch(/^slu_[\w-]{43}$/);
    expect((await first.call("GET", "/tokens", { token })).status).toBe(200);
    await first.stop();
    const second = await startInstance({ ownToken: true, dataFolder: first.dataFolder });
    expect((await second.call("GET", "/tokens", { token })).status).toBe(200);
    await second.stop();
  });
});

/** Each refused with its code; afterwards nothing has changed. */
const badInput: { name: string; path?: string; body: unknown; status: number; code: string; says?: RegExp }[] = [
  { name: "no JSON", body: "{rules:", status: 400, code: "invalid-request", says: /body: expected JSON/ },
  { name: "an empty body", body: "", status: 400, code: "invalid-request" },
  { name: "a number", body: "5", status: 400, code: "invalid-rules" },
  { name: "null", body: "null", status: 400, code: "invalid-rules" },
  {
    name: "an unknown field",
    body: [{ ...perUser(1), windw: "1m" }],
    status: 400,
    code: "invalid-rules",
    says: /did you mean "window"/,
  },
  { name: "an unknown top field", body: { rules: [], rule: [] }, status: 400, code: "invalid-rules" },
  {
    name: "two rules of one id",
    body: [perUser(1), perUser(2)],
    status: 400,
    code: "invalid-rules",
    says: /unique id/,
  },
  { name: "a limit below zero", body: [perUser(-1)], status: 400, code: "invalid-rules", says: /rules\[0\]\.limit/ },
  {
    name: "a field named __proto__",
    body: `{"rules":[{"id":"a","key":[],"algorithm":"fixed-window","limit":1,"window":"1m","__proto__":{"polluted":true}}]}`,
    status: 400,
    code: "invalid-rules",
  },
  { name: "a rule named __proto__", path: "/rules/__proto__", body: perUser(1), status: 400, code: "invalid-request" },
  {
    name: "a field named constructor",
    body: `{"rules":[],"constructor":{"prototype":{"polluted":true}}}`,
    status: 400,
    code: "invalid-rules",
  },
  { name: "ten megabytes", body: `[${" ".repeat(10 * 1024 * 1024)}]`, status: 413, code: "body-too-large" },
  {
    name: "a byte more than is accepted",
    body: `[${" ".repeat(MAX_DOCUMENT_BYTES - 1)}]`,
    status: 413,
    code: "body-too-large",
  },
  { name: "a version that is no number", body: { version: "1", rules: [] }, status: 400, code: "invalid-request" },
  { name: "an unknown parameter", path: "/rules?dryrun=true", body: [], status: 400, code: "invalid-request" },
  {
    name: "a dry run that is neither true nor false",
    path: "/rules?dryRun=yes",
    body: [],
    status: 400,
    code: "invalid-request",
  },
];

describe("bad input", () => {
  test.each(badInput)(
    "$name is refused with $code, and nothing changes",
    async ({ path = "/rules", body, status, code, says }) => {
      const before = (await call("GET", "/rules")).body;
      const reply = await call("PUT", path, { body });
      expect(reply).toMatchObject({ status, body: { status, code } });
      expect(reply.body.remedy.length).toBeGreaterThan(10);
      if (says !== undefined) expect(reply.body.detail).toMatch(says);
      expect((await call("GET", "/rules")).body).toEqual(before);
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    },
  );

  test("every mistake of a document is told at once, each with its place", async () => {
    const { body } = await call("PUT", "/rules", { body: [{ ...perUser(-1), nme: 1 }, { id: "UPPER" }] });
    expect(body.mistakes.length).toBeGreaterThan(4);
    expect(body.mistakes.map(({ path }) => path)).toEqual(
      expect.arrayContaining(["rules[0].limit", "rules[0].nme", "rules[1].id", "rules[1].key"]),
    );
  });

  test("a mistake in one rule of many names that rule", async () => {
    const many = Array.from({ length: 3_000 }, (_, i) => ({ ...perUser(i === 2_345 ? -1 : 1), id: `r${i}` }));
    const { body } = await call("PUT", "/rules", { body: many });
    expect(body.mistakes.map(({ path }) => path)).toEqual(["rules[2345].limit"]);
    const twice = await call("PUT", "/rules", {
      body: many.map((rule) => ({ ...rule, limit: 1 })).concat([{ ...perUser(1), id: "r7" }]),
    });
    expect(twice.body.detail).toMatch(/^rules\[3000\]\.id: expected a unique id, got "r7", which rules\[7\] has$/);
  });

  test("a mistake of one rule is named where that rule stands, however large its body is", async () => {
    const { rules } = (await call("GET", "/rules")).body;
    const overrides = Array.from({ length: 2_000 }, (_, i) => ({ match: { user: `user-${i}` }, limit: 7 }));
    const pathsOf = async (body: object): Promise<string[]> => {
      const reply = await call("PUT", "/rules/brand-new", { body });
      return reply.body.mistakes.map(({ path }) => path);
    };
    const place = `rules[${rules.length}].limit`;
    expect(await pathsOf({ ...perUser(-1), id: "brand-new" })).toEqual([place]);
    expect(await pathsOf({ ...perUser(-1), id: "brand-new", overrides })).toEqual([place]);
  });

  test("bodies that are no rules are bounded more tightly", async () => {
    const attributes = { user: "x".repeat(100 * 1024) };
    const { body } = await call("POST", "/keys/reset", { body: { rule: "per-user", attributes } });
    expect(body).toMatchObject({ status: 413, code: "body-too-large" });
  });

  test("another media type, a path that is not there and an If-Match of another form have their codes", async () => {
    const yaml = await call("PUT", "/rules", { body: "rules: []", headers: { "content-type": "application/yaml" } });
    expect(yaml.body).toMatchObject({ status: 415, code: "unsupported-media-type" });
    expect((await call("GET", "/nothing")).body).toMatchObject({ status: 404, code: "not-found" });
    expect((await call("GET", "/nothing", { token: "" })).status).toBe(401);
    const odd = await call("PUT", "/rules", { body: [], headers: { "if-match": '"1", "2"' } });
    expect(odd.body).toMatchObject({ status: 400, code: "invalid-request" });
  });
});

test("the OpenAPI document is 3.1, has every route, and carries the rule schema of the library", async () => {
  const documented = await startInstance();
  const document = (await documented.app.inject({ url: "/openapi.json" })).json();
  expect(document.openapi).toBe("3.1.0");
  expect(Object.keys(document.paths).sort()).toEqual([
    "/admin/v1/audit",
    "/admin/v1/audit/export",
    "/admin/v1/keys/block",
    "/admin/v1/keys/explain",
    "/admin/v1/keys/history",
    "/admin/v1/keys/reset",
    "/admin/v1/keys/top",
    "/admin/v1/load",
    "/admin/v1/regions",
    "/admin/v1/rules",
    "/admin/v1/rules/{id}",
    "/admin/v1/rules/{id}/promote",
    "/admin/v1/session",
    "/admin/v1/session/methods",
    "/admin/v1/sessions",
    "/admin/v1/sessions/{id}",
    "/admin/v1/spend",
    "/admin/v1/stats",
    "/admin/v1/stats/stream",
    "/admin/v1/timeline",
    "/admin/v1/tokens",
    "/admin/v1/tokens/{name}",
    "/admin/v1/versions",
    "/admin/v1/versions/{version}",
    "/admin/v1/versions/{version}/rollback",
  ]);
  const put = document.paths["/admin/v1/rules/{id}"].put;
  const { $ref } = put.requestBody.content["application/json"].schema;
  expect($ref).toBe("#/components/schemas/RuleRequest");
  expect(document.components.schemas.RuleRequest.properties.algorithm.enum).toContain("gcra");
  expect(put.parameters.map(({ name }: { name: string }) => name).sort()).toEqual([
    "dryRun",
    "id",
    "if-match",
    "message",
  ]);
  await documented.stop();
});

function spelled(path: string): string {
  return path
    .replace(/\?.*/, "")
    .replace(/^\/rules\/per-user/, "/rules/:id")
    .replace(/^\/versions\/1/, "/versions/:version")
    .replace(/^\/sessions\/none/, "/sessions/:id")
    .replace(/^\/tokens\/matrix/, "/tokens/:name");
}
