/** The rate limit quota service: its streams as clients see them, hostile ones among them, and behind a real Envoy. */
import { setTimeout as sleep } from "node:timers/promises";
import { status } from "@grpc/grpc-js";
import type { Rule } from "sluice";
import { afterEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { until } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";
import { QuotaClient } from "./quota-client.js";
import { envoyExample, startApp, startQuotaEnvoy } from "./real-envoy.js";
import { type RunningService, startServiceProcess, startTestService } from "./running-service.js";

const rule: Rule = {
  id: "per-tenant",
  match: { domain: "shop" },
  key: ["tenant"],
  algorithm: "rolling-window",
  limit: 60,
  window: "1m",
  prefetch: "1m",
};

const clients: QuotaClient[] = [];
function connect(address: string): QuotaClient {
  const client = new QuotaClient(address);
  clients.push(client);
  return client;
}
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

async function post(service: Pick<RunningService, "http">, call: string, body: object) {
  const answer = await fetch(`${service.http}/v1/${call}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await answer.json()) as { allowed: boolean; remaining: number; checks: { remaining: number }[] };
}

async function metric(service: Pick<RunningService, "http">, name: string): Promise<number> {
  const text = await (await fetch(`${service.http}/metrics`)).text();
  return Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`${name} `))
      ?.slice(name.length + 1) ?? 0,
  );
}

const acme = { attributes: { domain: "shop", tenant: "acme" } };

test("a report is answered by units, which checks of the same counter do not find any more", async () => {
  await using service = await startTestService({ rules: [rule] });
  const stream = connect(service.grpc).open();
  stream.report([{ tenant: "acme" }], { numRequestsDenied: 1 });
  const units = await stream.units();
  expect(units).toBe(53);
  expect((await post(service, "peek", acme)).remaining).toBe(7);
  // Two streams share: the second gets most of what is left, and both together no more than the limit.
  const other = connect(service.grpc).open();
  other.report([{ tenant: "acme" }], { numRequestsDenied: 1 });
  expect(units + (await other.units())).toBeLessThanOrEqual(60);
  expect(await metric(service, "sluice_envoy_quota_streams")).toBe(2);
  expect(await metric(service, "sluice_envoy_quota_buckets")).toBe(2);
});

test("usage is charged, also what passed without an assignment; an id's order of keys does not matter", async () => {
  await using service = await startTestService({ rules: [{ ...rule, mode: "shadow" }] });
  const stream = connect(service.grpc).open();
  stream.report([{ tenant: "acme", name: "a" }], { numRequestsAllowed: 20 });
  await stream.actions(1);
  stream.report([{ name: "a", tenant: "acme" }], { numRequestsAllowed: 5 });
  await stream.actions(1);
  expect(await metric(service, "sluice_envoy_quota_buckets")).toBe(1);
  expect((await post(service, "peek", acme)).checks[0]!.remaining).toBe(35);
});

test("other rules are pushed to open streams, without a report", async () => {
  await using service = await startTestService({ settings: { "admin-token": "t".repeat(32) } });
  const put = (rules: Rule[]) =>
    fetch(`${service.http}/admin/v1/rules`, {
      method: "PUT",
      headers: { authorization: `Bearer ${"t".repeat(32)}`, "content-type": "application/json" },
      body: JSON.stringify({ rules }),
    });
  expect((await put([])).status).toBe(200);
  const stream = connect(service.grpc).open();
  stream.report([{ tenant: "acme" }], { numRequestsDenied: 1 });
  expect(await stream.actions(1)).toMatchObject([
    { quotaAssignmentAction: { rateLimitStrategy: { blanketRule: expect.anything() } } },
  ]);
  // The change from before the stream was opened is none of its own: renewals are looked for four times a second.
  await sleep(1_000);
  await put([rule]);
  expect(await stream.units()).toBe(53);
  await put([{ ...rule, limit: 5 }]);
  expect(await stream.actions(1)).toMatchObject([{ quotaAssignmentAction: { rateLimitStrategy: { blanketRule: 1 } } }]);
});

test("the API token is asked for, as of every call", async () => {
  await using service = await startTestService({ rules: [rule], settings: { "api-token": "secret-secret-secret" } });
  const client = connect(service.grpc);
  const stranger = client.open();
  stranger.report([{ tenant: "acme" }]);
  expect((await stranger.ended).code).toBe(status.UNAUTHENTICATED);
  const liar = client.open({ authorization: "Bearer wrong" });
  liar.report([{ tenant: "acme" }]);
  expect((await liar.ended).code).toBe(status.UNAUTHENTICATED);
  const friend = client.open({ authorization: "Bearer secret-secret-secret" });
  friend.report([{ tenant: "acme" }]);
  expect(await friend.units()).toBe(53);
});

test("--envoy-rlqs false: the service is not there", async () => {
  await using service = await startTestService({ rules: [rule], settings: { "envoy-rlqs": "false" } });
  const stream = connect(service.grpc).open();
  stream.report([{ tenant: "acme" }]);
  expect((await stream.ended).code).toBe(status.UNIMPLEMENTED);
});

test("a first report without a domain ends the stream with its mistake", async () => {
  await using service = await startTestService({ rules: [rule] });
  const stream = connect(service.grpc).open();
  stream.report([{ tenant: "acme" }], {}, "");
  expect(await stream.ended).toMatchObject({
    code: status.INVALID_ARGUMENT,
    details: expect.stringContaining("domain"),
  });
});

test("a domain is bounded: a stream keeps its own for as long as it lives", async () => {
  await using service = await startTestService({ rules: [rule] });
  const stream = connect(service.grpc).open();
  stream.report([{ tenant: "acme" }], {}, "x".repeat(1_025));
  expect(await stream.ended).toMatchObject({
    code: status.INVALID_ARGUMENT,
    details: "domain: expected at most 1024 bytes, got 1025 bytes",
  });
});

test("bytes that are no report, another domain and a bucket without an id end the stream, and only that", async () => {
  await using service = await startTestService({ rules: [rule] });
  const client = connect(service.grpc);
  const good = client.open();
  good.report([{ tenant: "acme" }]);
  await good.units();
  const bytes = client.open();
  bytes.call.write(Buffer.from([0x0a, 0xff]));
  expect((await bytes.ended).code).toBe(status.INVALID_ARGUMENT);
  const mover = client.open();
  mover.report([{ tenant: "acme" }]);
  mover.report([{ tenant: "acme" }], {}, "other");
  expect((await mover.ended).code).toBe(status.INVALID_ARGUMENT);
  const nameless = client.open();
  nameless.report([{}]);
  expect((await nameless.ended).code).toBe(status.INVALID_ARGUMENT);
  good.report([{ tenant: "acme" }]);
  await good.actions(1);
  await until("the others are forgotten", async () => (await metric(service, "sluice_envoy_quota_buckets")) === 1);
});

test("a flood of bucket ids is cut at the bound: those beyond it are abandoned at once, the others keep their units", async () => {
  await using service = await startTestService({ rules: [rule] });
  const stream = connect(service.grpc).open();
  stream.report([{ tenant: "acme" }]);
  await stream.units();
  const abandoned = { count: 0 };
  for (let i = 0; i < 10; i++) {
    stream.report(Array.from({ length: 1_000 }, (_, j) => ({ tenant: `t${i}-${j}` })));
    // Units are two actions, an abandoned bucket one.
    for (let left = 1_000; left > 0; left--) {
      const [action] = await stream.actions(1);
      if (action!.abandonAction !== undefined) abandoned.count++;
      else await stream.actions(1);
    }
  }
  expect(abandoned.count).toBe(10_001 - 4_096);
  expect(await metric(service, "sluice_envoy_quota_buckets")).toBe(4_096);
  stream.call.end();
  await until("all are forgotten", async () => (await metric(service, "sluice_envoy_quota_buckets")) === 0);
});

test("huge ids, and ids of very many keys, are abandoned; all ids of a stream together are bounded too", async () => {
  await using service = await startTestService({ rules: [rule] });
  const stream = connect(service.grpc).open();
  stream.report([{ tenant: "x".repeat(60_000) }]);
  expect(await stream.actions(1)).toMatchObject([{ abandonAction: {} }]);
  stream.report([Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, "v"]))]);
  expect(await stream.actions(1)).toMatchObject([{ abandonAction: {} }]);
  stream.report(Array.from({ length: 100 }, (_, i) => ({ tenant: `${i}${"x".repeat(8_000)}` })));
  await until("the bytes are counted", async () => (await metric(service, "sluice_envoy_quota_buckets")) === 65);
});

test("a report of very many buckets is answered whole, in several messages", async () => {
  await using service = await startTestService({ rules: [rule] });
  const stream = connect(service.grpc).open();
  const tenants = Array.from({ length: 2_000 }, (_, i) => ({ tenant: `t${i}` }));
  stream.report(tenants, { numRequestsDenied: 1 });
  const assigned = (await stream.actions(2 * tenants.length)).filter(
    ({ quotaAssignmentAction }) => quotaAssignmentAction.rateLimitStrategy.tokenBucket !== undefined,
  );
  expect(new Set(assigned.map(({ bucketId }) => bucketId.bucket.tenant)).size).toBe(2_000);
});

test("reports that lie, without pause, by many ids and on several streams, lead a bucket into a debt of one limit and no more", async () => {
  const bucket = { id: "b", match: { domain: "shop" }, key: ["tenant"], algorithm: "token-bucket" } as const;
  await using service = await startTestService({
    rules: [{ ...bucket, limit: 60, window: "1h", prefetch: "1m" } as Rule],
  });
  const streams = [1, 2, 3].map(() => connect(service.grpc).open());
  const ids = Array.from({ length: 100 }, (_, i) => ({ tenant: "acme", name: `n${i}` }));
  for (const stream of streams) {
    for (let i = 0; i < 3; i++) stream.report(ids, { numRequestsAllowed: "18446744073709551615" });
  }
  const outcomes = ["units", "extended", "denied"].map(
    (name) => `sluice_envoy_quota_assignments_total{outcome="${name}"}`,
  );
  await until("all were read", async () => {
    const counts = await Promise.all(outcomes.map((name) => metric(service, name)));
    return counts.reduce((sum, count) => sum + count, 0) >= 900;
  });
  const { debt } = (await post(service, "charge", { ...acme, cost: 0 })) as { debt?: number };
  expect(debt).toBeGreaterThan(50);
  expect(debt).toBeLessThanOrEqual(60);
});

test("100 random reports of impossible counts, times and ids end at most their stream; another tenant's limit stays exact", async () => {
  await using service = await startTestService({ rules: [{ ...rule, window: "1h" }] });
  const seed = Date.now() % 2 ** 31;
  let state = seed;
  const pick = <T>(from: readonly T[]): T => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return from[Math.floor((state / 2 ** 31) * from.length)]!;
  };
  const counts = [0, 1, 60, 2 ** 32, "9223372036854775808", "18446744073709551615"];
  const times = [undefined, { seconds: 0 }, { seconds: -5 }, { seconds: "9223372036854775807", nanos: -1 }];
  const texts = ["", "tenant", "domain", "shop", "__proto__", "constructor", "\0", "{x}", "x".repeat(300)];
  const client = connect(service.grpc);
  let stream = client.open();
  const ended: number[] = [];
  for (let i = 0; i < 100; i++) {
    const bucket = Object.fromEntries([
      [pick(texts), pick(texts)],
      [pick(texts), pick(texts)],
    ]);
    const usage = { numRequestsAllowed: pick(counts), numRequestsDenied: pick(counts), timeElapsed: pick(times) };
    stream.report([bucket, bucket], usage, "shop");
    if (i % 20 !== 19) continue;
    stream.call.end();
    ended.push((await stream.ended).code);
    stream = client.open();
  }
  const expected: number[] = [status.OK, status.INVALID_ARGUMENT];
  expect(
    ended.filter((code) => !expected.includes(code)),
    `seed ${seed}`,
  ).toEqual([]);
  const victim = { attributes: { domain: "shop", tenant: "victim" } };
  let allowed = 0;
  for (let i = 0; i < 70; i++) if ((await post(service, "check", victim)).allowed) allowed++;
  expect(allowed, `seed ${seed}`).toBe(60);
});

test("one connection has a bounded number of streams, and its others stay", async () => {
  await using service = await startTestService({ rules: [rule] });
  const client = connect(service.grpc);
  const streams = Array.from({ length: 17 }, () => client.open());
  for (const [i, stream] of streams.entries()) stream.report([{ tenant: `t${i}` }]);
  expect((await streams[16]!.ended).code).toBe(status.RESOURCE_EXHAUSTED);
  for (const stream of streams.slice(0, 16)) expect(await stream.units()).toBe(53);
});

test("a client that never reads gets nothing more, and holds nothing of the service", async () => {
  const service = await startServiceProcess({ rules: [rule] });
  const stream = connect(service.grpc).open();
  stream.call.pause();
  const before = await service.liveMb();
  const ids = Array.from({ length: 250 }, (_, i) => ({ tenant: `${i}${"x".repeat(1_900)}` }));
  // Each answer has a megabyte: far more than flow control lets out.
  for (let i = 0; i < 8; i++) stream.report(ids, { numRequestsDenied: 1_000 });
  const outcomes = ["units", "extended", "denied"].map(
    (name) => `sluice_envoy_quota_assignments_total{outcome="${name}"}`,
  );
  await until("its reports were read", async () => {
    const counts = await Promise.all(outcomes.map((name) => metric(service, name)));
    return counts.reduce((sum, count) => sum + count, 0) >= 8 * ids.length;
  });
  const other = connect(service.grpc).open();
  other.report([{ tenant: "acme" }]);
  expect(await other.units()).toBe(53);
  expect((await service.liveMb()) - before).toBeLessThan(10);
  expect(await service.end()).toBe(0);
});

test("the end of the service ends the streams, and they do not hold it up", async () => {
  const service = await startTestService({ rules: [rule], settings: { "drain-timeout": "60s" } });
  const stream = connect(service.grpc).open();
  stream.report([{ tenant: "acme" }]);
  await stream.units();
  const closed = service.close();
  expect((await stream.ended).code).toBe(status.UNAVAILABLE);
  await closed;
});

test.skipIf(whyMissing("redis"))(
  "two instances on one Redis share what they assign; with Redis away there is no assignment",
  async () => {
    const redis = await startRedis();
    await using one = await startTestService({ rules: [rule], settings: { store: redis.url, "store-deadline": "5s" } });
    await using two = await startTestService({ rules: [rule], settings: { store: redis.url, "store-deadline": "5s" } });
    const streams = [connect(one.grpc).open(), connect(two.grpc).open()];
    let sum = 0;
    for (const stream of streams) {
      stream.report([{ tenant: "acme" }], { numRequestsDenied: 100 });
      sum += await stream.units();
    }
    expect(sum).toBeGreaterThan(53);
    expect(sum).toBeLessThanOrEqual(60);
    expect((await post(one, "peek", acme)).remaining).toBe(60 - sum);
    await redis.stop();
    streams[0]!.report([{ tenant: "other" }], { numRequestsDenied: 1 });
    await until(
      "the failure is counted",
      async () => (await metric(one, 'sluice_envoy_quota_assignments_total{outcome="failed"}')) > 0,
    );
  },
);

describe.skipIf(whyMissing("envoy"))("a real Envoy", () => {
  test("two of them run the example: the application sees no more than the limit, checks included", async () => {
    const app = await startApp((_request, response) => response.end("ok"));
    await using service = await startTestService({
      rules: (parse(envoyExample("quota-rules.yaml")) as { rules: Rule[] }).rules,
    });
    const envoys = [await startQuotaEnvoy(app.at, service.grpc), await startQuotaEnvoy(app.at, service.grpc)];
    // Denied until the first assignment is there: the even share of ten seconds, for each.
    let checked = 0;
    const attributes = { domain: "shop", name: "by-tenant", tenant: "acme" };
    for (const { get } of envoys) {
      await until("it has units", async () => (await get("acme")) === 200);
      for (let i = 0; i < 30; i++) expect(await get("acme")).toBe(200);
      if ((await post(service, "check", { attributes })).allowed) checked++;
    }
    expect(checked).toBe(2);
    expect(app.seen().total).toBe(62);
    // What the two hold and what was used: both hold a hundred.
    expect((await post(service, "peek", { attributes })).remaining).toBe(600 - 2 * 100 - checked);
    await Promise.all(envoys.map((envoy) => envoy.stop()));
    app.close();
  });

  test("every request that passes has a unit: at most the limit reaches the application, from both together", async () => {
    const app = await startApp((_request, response) => response.end("ok"));
    await using service = await startTestService({
      rules: [rule],
    });
    const envoys = [await startQuotaEnvoy(app.at, service.grpc), await startQuotaEnvoy(app.at, service.grpc)];
    const passed = [0, 0];
    for (const [i, { get }] of envoys.entries()) {
      await until("it has units", async () => (await get("acme")) === 200);
      passed[i]!++;
      for (let n = 0; n < 80; n++) if ((await get("acme")) === 200) passed[i]!++;
    }
    // 30 + 15 + 8 for the first, of the rest most for the second.
    expect(passed[0]).toBe(53);
    expect(passed[1]).toBeGreaterThan(3);
    expect(app.seen().total).toBe(passed[0]! + passed[1]!);
    expect(app.seen().total).toBeLessThanOrEqual(60);
    await Promise.all(envoys.map((envoy) => envoy.stop()));
    app.close();
  });

  test("Sluice goes away: the assignment ends, Envoy's expired behaviour follows; Sluice back: it assigns again", async () => {
    const app = await startApp((_request, response) => response.end("ok"));
    const port = String(await freePort());
    const start = () =>
      startTestService({ rules: [{ ...rule, limit: 3, prefetch: "4s" } as Rule], settings: { "grpc-port": port } });
    const first = await start();
    const edit = (text: string) => text.replace(/token_bucket: \{.*\}/, "blanket_rule: ALLOW_ALL");
    const { get, stop } = await startQuotaEnvoy(app.at, `127.0.0.1:${port}`, edit);
    await until("it has units", async () => (await get("acme")) === 200);
    await until("they are used up", async () => (await get("acme")) === 429);
    await first.close();
    await until("everything passes", async () => {
      for (let i = 0; i < 5; i++) if ((await get("acme")) !== 200) return false;
      return true;
    });
    await using _second = await start();
    await until("it is limited again", async () => (await get("acme")) === 429);
    await stop();
    app.close();
  });
});
