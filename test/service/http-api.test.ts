/** The HTTP API of the data plane, with Node's fetch as the client. */
import { once } from "node:events";
import { type IncomingMessage, METHODS, request } from "node:http";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, postJson, type RunningService, startTestService } from "./running-service.js";

const rules: Rule[] = [
  { id: "per-user", key: ["user"], match: { path: "/v1/**" }, algorithm: "rolling-window", limit: 3, window: "1m" },
  { id: "places", key: ["job"], algorithm: "concurrency", limit: 1, ttl: "30s" },
  {
    id: "by-tokens",
    key: ["tenant"],
    algorithm: "token-bucket",
    limit: 100,
    window: "1m",
    cost: { attribute: "tokens" },
  },
];

let service: RunningService;
beforeAll(async () => {
  service = await startTestService({ rules });
});
afterAll(() => service.close());

const check = (body: unknown) => postJson(`${service.http}/v1/check`, body);

describe("check", () => {
  test("is answered 200 whether it passes or not, and the refusal names the rule and the wait", async () => {
    const attributes = { user: "a", path: "/v1/orders" };
    for (let i = 0; i < 3; i++)
      expect((await check({ attributes })).body).toMatchObject({ allowed: true, remaining: 2 - i });
    const { status, body } = await check({ attributes });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      allowed: false,
      rule: "per-user",
      limit: 3,
      remaining: 0,
      reason: "limit",
      violated: ["per-user"],
    });
    expect(body.retryAfterMs).toBeGreaterThan(50_000);
    expect(body.checks).toHaveLength(1);
  });

  test("passes where no rule applies", async () => {
    const { body } = await check({ attributes: { user: "a", path: "/elsewhere" } });
    expect(body).toMatchObject({ allowed: true, violated: [], checks: [] });
    expect(body).not.toHaveProperty("rule");
  });

  test("with the same id again returns the same decision and charges nothing", async () => {
    const request = { attributes: { user: "b", path: "/v1/x" }, id: "order-17" };
    const first = await check(request);
    const second = await check(request);
    expect(second.body.remaining).toBe(first.body.remaining);
    expect((await check({ attributes: { user: "b", path: "/v1/x" } })).body.remaining).toBe(1);
  });

  test("takes its cost from the request or from an attribute", async () => {
    expect((await check({ attributes: { user: "c", path: "/v1/x" }, cost: 2 })).body.remaining).toBe(1);
    expect((await check({ attributes: { tenant: "t", tokens: 60 } })).body.remaining).toBe(40);
    expect((await check({ attributes: { user: "c", path: "/v1/x" }, cost: 4 })).body.reason).toBe("cost-exceeds-limit");
  });

  test.each([
    ["no JSON", "{", "body: expected JSON"],
    ["nothing", "", "body: expected JSON, got nothing"],
    ["no object", "[]", "body: expected an object, got a list"],
    ["no attributes", "{}", "body.attributes: expected an object, got nothing"],
    ["a list as attributes", '{"attributes":[]}', "body.attributes: expected an object, got a list"],
    ["an attribute that is no scalar", '{"attributes":{"user":{}}}', "body.attributes.user"],
    ["a cost below 0", '{"attributes":{},"cost":-1}', "body.cost: expected at least 0, got -1"],
    ["a cost of 1.5", '{"attributes":{},"cost":1.5}', "body.cost: expected a whole number, got 1.5"],
    ["a cost as text", '{"attributes":{},"cost":"1"}', 'body.cost: expected a whole number, got "1"'],
    ["an empty id", '{"attributes":{},"id":""}', "body.id"],
    ["an unknown field", '{"attributes":{},"cots":1}', 'body: unknown field "cots"'],
    ["a cost attribute that is no number", '{"attributes":{"tenant":"t","tokens":"many"}}', "attributes.tokens"],
  ])("with %s is refused with 400 invalid-request and the place", async (_what, body, detail) => {
    const answer = await check(body);
    expect(answer.status).toBe(400);
    expect(answer.headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(answer.body).toMatchObject({ status: 400, code: "invalid-request", title: "Bad Request" });
    expect(answer.body.detail).toContain(detail);
  });

  test("answers bodies that it takes off the fast path alike", async () => {
    // Chunked, and a content type with parameters of another spelling: both go through the framework's route.
    const body = JSON.stringify({ attributes: { user: "slow", path: "/v1/x" } });
    const chunked = await fetch(`${service.http}/v1/check`, {
      method: "POST",
      headers: { "content-type": "application/json;charset=UTF-8" },
      body: new Blob([body]).stream(),
      duplex: "half",
    } as RequestInit);
    expect(await chunked.json()).toMatchObject({ allowed: true, remaining: 2 });
    const wrong = await postJson(`${service.http}/v1/check`, "{", { "content-type": "application/json;charset=UTF-8" });
    const fast = await check("{");
    expect(wrong.status).toBe(fast.status);
    expect(wrong.body).toEqual(fast.body);
  });

  test("over 64 KiB is 413 and says so, another content type 415, another method 405 with those allowed", async () => {
    const large = await check({ attributes: { user: "x".repeat(70_000) } });
    expect(large.status).toBe(413);
    expect(large.body).toMatchObject({ code: "body-too-large", detail: "body: expected at most 64 KiB" });
    const batch = await postJson(`${service.http}/v1/check/batch`, " ".repeat(2 ** 20 + 1));
    expect([batch.status, batch.body.detail]).toEqual([413, "body: expected at most 1 MiB"]);
    const form = await postJson(`${service.http}/v1/check`, "user=1", {
      "content-type": "application/x-www-form-urlencoded",
    });
    expect([form.status, form.body.code]).toEqual([415, "unsupported-media-type"]);
    const get = await fetch(`${service.http}/v1/check`);
    expect([get.status, ((await get.json()) as Json).code]).toEqual([405, "method-not-allowed"]);
    expect(get.headers.get("allow")).toBe("POST");
    const nowhere = await fetch(`${service.http}/v1/chek`);
    expect([nowhere.status, ((await nowhere.json()) as Json).code]).toEqual([404, "not-found"]);
  });

  test("that is no UTF-8 is refused, on every path into the service", async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"attributes":{"user":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}}'),
    ]);
    for (const [route, type] of [
      ["check", "application/json"],
      ["check", "application/json;charset=UTF-8"],
      ["peek", "application/json"],
    ]) {
      const answer = await fetch(`${service.http}/v1/${route}`, {
        method: "POST",
        headers: { "content-type": type! },
        body: bytes,
      });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ code: "invalid-request", detail: "body: expected UTF-8" });
    }
    expect((await check({ attributes: { user: "bücher 🎉", path: "/v1/x" } })).body.remaining).toBe(2);
  });
});

test("a batch is decided in order, each request by itself", async () => {
  const one = { attributes: { user: "batch", path: "/v1/x" } };
  const { status, body } = await postJson(`${service.http}/v1/check/batch`, {
    requests: [one, one, one, one, { attributes: {} }],
  });
  expect(status).toBe(200);
  expect(body.decisions.map((made: { allowed: boolean }) => made.allowed)).toEqual([true, true, true, false, true]);
});

test("an id that was sent for another request is a mistake: 400, and in a batch in its place alone", async () => {
  const attributes = { user: "id-owner", path: "/v1/x" };
  const first = await postJson(`${service.http}/v1/check`, { attributes, id: "owned" });
  expect([first.status, first.body.allowed]).toEqual([200, true]);
  const other = { ...attributes, user: "id-thief" };
  const reused = await postJson(`${service.http}/v1/check`, { attributes: other, id: "owned" });
  expect([reused.status, reused.body.code]).toEqual([400, "invalid-request"]);
  expect(reused.body.detail).toMatch(/^id: was sent for another request/);
  const batch = await postJson(`${service.http}/v1/check/batch`, {
    requests: [{ attributes }, { attributes: other, id: "owned" }, { attributes, id: "owned" }],
  });
  expect(batch.status).toBe(200);
  expect(
    batch.body.decisions.map(({ allowed, code }: { allowed?: boolean; code?: string }) => allowed ?? code),
  ).toEqual([true, "invalid-request", true]);
});

test("a batch holds at most 20 000 values, counted before it is parsed; its texts may hold anything", async () => {
  const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
  const fields = Object.fromEntries(many(50_000, (i) => [`unknown${i}`, i]));
  const hostile = [
    JSON.stringify({ requests: [], ...fields }),
    JSON.stringify({ requests: [{ attributes: fields }] }),
    `{"requests":[${many(300_000, () => "{}").join()}]}`,
    // Not JSON: the parser would say so, after it has read all of it.
    `{"requests":${"[".repeat(300_000)}`,
  ];
  for (const body of hostile) {
    const answer = await postJson(`${service.http}/v1/check/batch`, body);
    expect([answer.status, answer.body.code]).toEqual([413, "body-too-large"]);
    expect(answer.body.detail).toMatch(/^body: expected at most 20000 values, got \d+$/);
  }
  const named = Object.fromEntries(many(15, (i) => [`name${i}`, `a value of some length, with "[{,${i}`]));
  const honest = { requests: many(1_000, () => ({ attributes: named, cost: 1 })) };
  expect((await postJson(`${service.http}/v1/check/batch`, honest)).status).toBe(200);
  const text = { requests: [{ attributes: { user: '\\",[{'.repeat(30_000) } }] };
  expect((await postJson(`${service.http}/v1/check/batch`, text)).status).not.toBe(413);
});

test("a batch of 1000 is taken, of 1001 refused", async () => {
  const requests = Array.from({ length: 1001 }, (_, i) => ({ attributes: { user: `many-${i}`, path: "/v1/x" } }));
  expect((await postJson(`${service.http}/v1/check/batch`, { requests })).status).toBe(400);
  const { body } = await postJson(`${service.http}/v1/check/batch`, { requests: requests.slice(1) });
  expect(body.decisions).toHaveLength(1000);
});

test("a peek charges nothing", async () => {
  const attributes = { user: "peek", path: "/v1/x" };
  for (let i = 0; i < 5; i++)
    expect((await postJson(`${service.http}/v1/peek`, { attributes })).body.remaining).toBe(3);
});

test("a refund needs the id and nothing else: with it anybody may give back, and a guess that misses changes nothing", async () => {
  const attributes = { user: "guessed", path: "/v1/x" };
  await check({ attributes, id: "order-1042" });
  const refund = async (id: string) => (await postJson(`${service.http}/v1/refund`, { id })).body;
  for (const id of ["order-1041", "order-1043", "order-1042 ", "ORDER-1042"]) {
    expect(await refund(id)).toEqual({ refunded: false });
  }
  const remaining = async () => (await postJson(`${service.http}/v1/peek`, { attributes })).body.remaining;
  expect(await remaining()).toBe(2);
  // The id is the capability: the docs ask for one that cannot be guessed.
  expect(await refund("order-1042")).toEqual({ refunded: true });
  expect(await remaining()).toBe(3);
});

test("an explanation says which rules were considered, why, what is stored, and when it passes", async () => {
  const { body } = await postJson(`${service.http}/v1/explain`, { attributes: { user: "a", path: "/v1/orders" } });
  const byRule = Object.fromEntries(body.rules.map((rule: { rule: string }) => [rule.rule, rule]));
  expect(byRule["per-user"]).toMatchObject({
    matched: true,
    key: expect.stringMatching(/^\{user=a\}:per-user:/),
    state: { count: 3 },
  });
  expect(Date.parse(byRule["per-user"].nextAllowedAt)).toBeGreaterThan(Date.now());
  expect(byRule.places).toMatchObject({ matched: false });
  const { decision, rules: _rules, ...fields } = body;
  expect(fields).toMatchObject({ allowed: false, rule: "per-user", remaining: 0, violated: ["per-user"] });
  expect(fields).toEqual(decision);
});

test("a lease is held, renewed, released once, and then free for another", async () => {
  const attributes = { job: "nightly" };
  const held = (await check({ attributes })).body;
  expect(held.lease.expiresAfterMs).toBe(30_000);
  expect((await check({ attributes })).body).toMatchObject({ allowed: false, reason: "concurrency" });
  const lease = held.lease.id;
  expect((await postJson(`${service.http}/v1/renew`, { lease })).body).toEqual({
    renewed: true,
    expiresAfterMs: 30_000,
  });
  expect((await postJson(`${service.http}/v1/release`, { lease, outcome: "success" })).body).toEqual({
    released: true,
  });
  expect((await postJson(`${service.http}/v1/release`, { lease })).body).toEqual({ released: false });
  expect((await postJson(`${service.http}/v1/renew`, { lease })).body).toEqual({ renewed: false, expiresAfterMs: 0 });
  expect((await check({ attributes })).body.allowed).toBe(true);
});

test("what no decision gave as a lease is not held: released and renewed are false, as for one that is over", async () => {
  for (const lease of ["no-such-lease", "forged.s.e30", "ü", "x".repeat(8_192)]) {
    const released = await postJson(`${service.http}/v1/release`, { lease });
    expect([released.status, released.body]).toEqual([200, { released: false }]);
    const renewed = await postJson(`${service.http}/v1/renew`, { lease });
    expect([renewed.status, renewed.body]).toEqual([200, { renewed: false, expiresAfterMs: 0 }]);
  }
  for (const lease of ["", 7, null, undefined]) {
    expect((await postJson(`${service.http}/v1/release`, { lease })).status).toBe(400);
  }
});

test("a refund gives back once", async () => {
  const attributes = { user: "refund", path: "/v1/x" };
  await check({ attributes, id: "to-refund" });
  expect((await postJson(`${service.http}/v1/refund`, { id: "to-refund" })).body).toEqual({ refunded: true });
  expect((await postJson(`${service.http}/v1/refund`, { id: "to-refund" })).body).toEqual({ refunded: false });
  expect((await postJson(`${service.http}/v1/peek`, { attributes })).body.remaining).toBe(3);
});

test("liveness, readiness and metrics are told", async () => {
  expect(await (await fetch(`${service.http}/healthz`)).json()).toEqual({ live: true });
  expect(await (await fetch(`${service.http}/healthcheck`)).text()).toBe("OK");
  const ready = await fetch(`${service.http}/readyz`);
  expect(ready.status).toBe(200);
  expect(await ready.json()).toMatchObject({
    ready: true,
    rules: { count: 3 },
    store: { kind: "memory", answers: true },
  });
  const metrics = await (await fetch(`${service.http}/metrics`)).text();
  expect(metrics).toMatch(/sluice_checks_total\{rule="per-user",mode="enforce",outcome="refused",reason="limit"\} \d+/);
  expect(metrics).toMatch(/sluice_decision_seconds_bucket\{le="0.001",transport="http"\} \d+/);
  expect(metrics).toMatch(/sluice_store_degraded 0/);
  expect(metrics).toMatch(/nodejs_eventloop_lag_seconds/);
});

test("OpenAPI 3.1 lists every call, and a page shows it", async () => {
  const document = (await (await fetch(`${service.http}/openapi.json`)).json()) as { openapi: string; paths: object };
  expect(document.openapi).toBe("3.1.0");
  const calls = ["check", "check/batch", "peek", "explain", "release", "renew", "refund", "forward-auth"].map(
    (call) => `/v1/${call}`,
  );
  expect(Object.keys(document.paths)).toEqual(
    expect.arrayContaining([...calls, "/json", "/healthz", "/readyz", "/metrics"]),
  );
  const page = await fetch(`${service.http}/docs`);
  expect(page.status).toBe(200);
  expect(await page.text()).toContain("swagger");
});

test("with an API token, the data plane asks for it and probes do not", async () => {
  await using guarded = await startTestService({ rules, settings: { "api-token": "a-token-of-the-data-plane" } });
  const body = { attributes: { user: "a", path: "/v1/x" } };
  const check = (headers: Record<string, string>) => postJson(`${guarded.http}/v1/check`, body, headers);
  for (const headers of [{}, { authorization: "Bearer wrong" }, { authorization: "a-token-of-the-data-plane" }]) {
    const answer = await check(headers as Record<string, string>);
    expect([answer.status, answer.body.code]).toEqual([401, "unauthorized"]);
  }
  expect((await check({ authorization: "Bearer a-token-of-the-data-plane" })).body.allowed).toBe(true);
  for (const path of ["/v1/peek", "/v1/release", "/json"]) {
    expect((await postJson(`${guarded.http}${path}`, {})).status).toBe(401);
  }
  expect((await fetch(`${guarded.http}/readyz`)).status).toBe(200);
});

test("a Content-Type of the client that no parser reads decides nothing, for gateways and for Envoy's JSON", async () => {
  for (const type of ["json", "", "text", "/"]) {
    const asked = request(`${service.http}/v1/forward-auth`, {
      method: "POST",
      headers: { "x-forwarded-uri": "/x", "content-type": type, connection: "close" },
    });
    asked.end("a body of the client");
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    answer.resume();
    expect([type, answer.statusCode]).toEqual([type, 200]);
    const body = { domain: "none", descriptors: [{ entries: [{ key: "user", value: "a" }] }] };
    expect([type, (await postJson(`${service.http}/json`, body, { "content-type": type })).status]).toEqual([
      type,
      200,
    ]);
  }
});

test("a gateway may ask with any method of its client", async () => {
  const answers = await Promise.all(
    METHODS.filter((method) => method !== "CONNECT").map(async (method) => {
      const path = "/v1/forward-auth";
      const asked = request(`${service.http}${path}`, {
        method,
        headers: { "x-forwarded-uri": "/x", connection: "close" },
      });
      asked.end();
      const [answer] = (await once(asked, "response")) as [IncomingMessage];
      answer.resume();
      return [method, answer.statusCode];
    }),
  );
  expect(answers.filter(([, status]) => status !== 200)).toEqual([]);
  const wrong = request(`${service.http}/v1/check`, { method: "PURGE", headers: { connection: "close" } }).end();
  const [refused] = (await once(wrong, "response")) as [IncomingMessage];
  refused.resume();
  expect([refused.statusCode, refused.headers.allow]).toEqual([405, "POST"]);
});

test("a reset by the attributes of a check forgets what that check counted, also where --region named the region", async () => {
  const perRegion: Rule = {
    id: "per-region",
    key: ["region", "user"],
    algorithm: "fixed-window",
    limit: 1,
    window: "1d",
  };
  await using regional = await startTestService({
    rules: [perRegion],
    settings: { region: "eu", "admin-token": "an-admin-token-for-tests" },
  });
  const attributes = { user: "a" };
  const allowed = async () => (await postJson(`${regional.http}/v1/check`, { attributes })).body.allowed;
  expect([await allowed(), await allowed()]).toEqual([true, false]);
  const admin = { authorization: "Bearer an-admin-token-for-tests" };
  const reset = (known: object) =>
    postJson(`${regional.http}/admin/v1/keys/reset`, { rule: "per-region", attributes: known }, admin);
  expect((await reset({ ...attributes, region: "us" })).status).toBe(200);
  expect(await allowed()).toBe(false);
  expect((await reset(attributes)).status).toBe(200);
  expect(await allowed()).toBe(true);
});
