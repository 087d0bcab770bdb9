/** What the admin API tells of the traffic: of one service, of two on one Redis, after a restart, while Redis is away. */
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter } from "sluice";
import { expect, test as vitest } from "vitest";
import { MemorySharedState } from "../../packages/server/src/instance/memory-shared-state.js";
import { createLog } from "../../packages/server/src/log.js";
import { startFigures } from "../../packages/server/src/monitoring/figures.js";
import { MemoryHistory } from "../../packages/server/src/monitoring/history/memory-history.js";
import { TopKeysReader } from "../../packages/server/src/monitoring/top-keys/read-top-keys.js";
import { observeTraffic } from "../../packages/server/src/monitoring/traffic.js";
import type { TopKeysView } from "../../packages/server/src/monitoring/views/keys.js";
import type { LiveView, StatsView } from "../../packages/server/src/monitoring/views/stats.js";
import { startService } from "../../packages/server/src/service/service.js";
import { resolveSettings } from "../../packages/server/src/settings/settings.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder, removeTempFolder } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { type Json, postJson, startTestService } from "../service/running-service.js";
import { sourcesOf } from "./stats-sources.js";

const onRedis = vitest.skipIf(whyMissing("redis"));
const token = "an-admin-token-for-tests";
const headers = { authorization: `Bearer ${token}` };
const rules = [
  { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 10, window: "1h", candidate: { limit: 5 } },
  {
    id: "watched",
    match: { path: "/slow" },
    key: [],
    algorithm: "fixed-window",
    limit: 1,
    window: "1h",
    mode: "shadow",
  },
] as const;

async function get<T>(http: string, path: string): Promise<T> {
  const answer = await fetch(`${http}/admin/v1${path}`, { headers });
  const body = (await answer.json()) as Json;
  if (!answer.ok) throw new Error(`${answer.status} ${body.code}`);
  return body as T;
}

async function until<T>(what: string, read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  let last: unknown;
  for (let i = 0; i < 300; i++) {
    try {
      const value = await read();
      if (holds(value)) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    await sleep(200);
  }
  throw new Error(`not within a minute: ${what}; last: ${last instanceof Error ? last : JSON.stringify(last)}`);
}

const check = (http: string, attributes: Record<string, string>) => postJson(`${http}/v1/check`, { attributes });
const requestsIn = ({ total }: StatsView): number => total.allowed + total.refused;

vitest("a service tells what it allowed and refused, by rule, candidate, shadow, utilisation and latency", async () => {
  await using service = await startTestService({ rules: rules as never, settings: { "admin-token": token } });
  for (let i = 0; i < 15; i++) await check(service.http, { user: "ann" });
  for (let i = 0; i < 3; i++) await check(service.http, { user: `u${i}`, path: "/slow" });
  for (let i = 0; i < 2; i++) await check(service.http, { usr: "misspelt" });
  const stats = await until(
    "all counted",
    () => get<StatsView>(service.http, "/stats?window=hour"),
    (view) => requestsIn(view) === 20,
  );
  expect(stats).toMatchObject({
    window: "hour",
    stepMs: 60_000,
    instances: 1,
    total: { allowed: 15, refused: 5, shadowRefused: 2, degraded: 0, unmatched: 2 },
  });
  expect(stats.total.points).toHaveLength(60);
  expect(stats.total.points.reduce((sum, { allowed }) => sum + allowed, 0)).toBe(15);
  expect(stats.total.latency.p50Ms).toBeGreaterThan(0);
  expect(stats.total.latency.p99Ms).toBeGreaterThanOrEqual(stats.total.latency.p50Ms);
  const [first, second] = stats.rules;
  expect(first).toMatchObject({ rule: "per-user", allowed: 13, refused: 5, candidateRefused: 10, candidateAllowed: 8 });
  expect(first?.violationRate).toBeCloseTo(5 / 18);
  // ann: one check each at 1/10 to 9/10, one at 10/10 and five refused; three others at 1/10.
  expect(first?.utilisation).toEqual([0, 4, 1, 1, 1, 1, 1, 1, 1, 7]);
  expect(first?.points).toBeUndefined();
  expect(second).toMatchObject({ rule: "watched", allowed: 3, refused: 0, shadowRefused: 2 });
  const one = await get<StatsView>(service.http, "/stats?window=day&rule=per-user");
  expect(one.rules.map(({ rule, points }) => [rule, points?.length])).toEqual([["per-user", 96]]);
});

vitest("many who ask for figures at once get one reading", async () => {
  const limiter = createLimiter({ rules: [] });
  const log = createLog("silent");
  const history = await MemoryHistory.open({ dataFolder: undefined, log });
  const shared = await MemorySharedState.open({ dataFolder: undefined, log });
  const traffic = observeTraffic(limiter, { isCounted: true });
  const { heartbeat } = sourcesOf(history);
  const monitoring = startFigures({
    limiter,
    traffic,
    history,
    shared,
    instance: "one",
    heartbeat,
    health: { view: () => undefined },
    topKeys: new TopKeysReader(shared, traffic.topKeys),
    log,
    storeKind: "memory",
    alertsFiring: () => 0,
  });
  const views = await Promise.all(Array.from({ length: 20 }, () => monitoring.readStats({ window: "day" })));
  expect(new Set(views).size).toBe(1);
  expect((await monitoring.readStats({ window: "hour" })).window).toBe("hour");
  await monitoring.close();
  await limiter.close();
});

vitest("the live stream sends an event a second, and ends when the service does", async () => {
  const service = await startTestService({ rules: rules as never, settings: { "admin-token": token } });
  const answer = await fetch(`${service.http}/admin/v1/stats/stream`, { headers });
  expect(answer.headers.get("content-type")).toContain("text/event-stream");
  const events: LiveView[] = [];
  let text = "";
  const ended = (async () => {
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (const [, data] of text.matchAll(/event: live\ndata: (.+)\n\n/g)) events.push(JSON.parse(data!));
      text = text.slice(text.lastIndexOf("\n\n") + 2);
    }
  })();
  for (let i = 0; i < 20; i++) await check(service.http, { user: "ann" });
  await until(
    "events came",
    async () => events,
    (seen) => seen.some(({ allowedPerSecond }) => allowedPerSecond > 0) && seen.length >= 4,
  );
  expect(events.reduce((sum, view) => sum + view.allowedPerSecond, 0)).toBeLessThanOrEqual(10);
  expect(new Set(events.map(({ atMs }) => atMs)).size).toBe(events.length);
  expect(events.at(-1)).toMatchObject({ instances: 1, store: { kind: "memory", state: "up" }, alertsFiring: 0 });
  await service.close();
  await ended;
});

vitest("a stream ends within seconds when its token is deleted; others go on", async () => {
  await using service = await startTestService({ settings: { "admin-token": token } });
  const admin = `${service.http}/admin/v1`;
  const made = await postJson(`${admin}/tokens`, { name: "short-lived", role: "viewer" }, headers);
  const open = (own: string, signal?: AbortSignal) =>
    fetch(`${admin}/stats/stream`, { headers: { authorization: `Bearer ${own}` }, signal: signal ?? null });
  const ending = new AbortController();
  const ended: string[] = [];
  const other = await open(token, ending.signal);
  void other.text().then(
    () => ended.push("admin"),
    () => ended.push("aborted"),
  );
  const stream = await open(made.body.token);
  void stream.text().then(() => ended.push("short-lived"));
  await sleep(200);
  expect(ended).toEqual([]);
  expect((await fetch(`${admin}/tokens/short-lived`, { method: "DELETE", headers })).status).toBe(204);
  await until(
    "the stream has ended",
    async () => ended,
    ({ length }) => length > 0,
  );
  expect(ended).toEqual(["short-lived"]);
  ending.abort();
});

vitest("streams are bounded, and one that ends makes room", async () => {
  await using service = await startTestService({ rules: rules as never, settings: { "admin-token": token } });
  const controllers = Array.from({ length: 100 }, () => new AbortController());
  const open = ({ signal }: AbortController) => fetch(`${service.http}/admin/v1/stats/stream`, { headers, signal });
  await Promise.all(controllers.map(open));
  const tooMany = await open(new AbortController());
  expect([tooMany.status, ((await tooMany.json()) as Json).code]).toEqual([503, "too-many-streams"]);
  controllers[0]!.abort();
  const last = new AbortController();
  const again = await until(
    "room",
    () => open(last),
    ({ status }) => status === 200,
  );
  expect(again.status).toBe(200);
  for (const controller of [...controllers, last]) controller.abort();
});

vitest(
  "top keys tell rule, attributes, traffic, refusals and peak use, and are found by rule and by text",
  async () => {
    await using service = await startTestService({ rules: rules as never, settings: { "admin-token": token } });
    for (let i = 0; i < 14; i++) await check(service.http, { user: "Ann <b>&=:{}" });
    for (let i = 0; i < 3; i++) await check(service.http, { user: "bob" });
    await check(service.http, { user: "x".repeat(300) });
    const read = (query: string) => get<TopKeysView>(service.http, `/keys/top?${query}`);
    const view = await until(
      "keys are written",
      () => read("window=hour"),
      ({ keys }) => keys.length === 3,
    );
    expect(view).toMatchObject({ by: "traffic", maxError: 0 });
    expect(view.keys).toEqual([
      { rule: "per-user", attributes: { user: "Ann <b>&=:{}" }, count: 14, refused: 4, peakUtilisation: 1 },
      { rule: "per-user", attributes: { user: "bob" }, count: 3, refused: 0, peakUtilisation: 0.3 },
      {
        rule: "per-user",
        attributes: { user: `${"x".repeat(256)}…` },
        digest: expect.stringMatching(/^#[\w-]{43}$/),
        count: 1,
        refused: 0,
        peakUtilisation: 0.1,
      },
    ]);
    expect((await read("by=refusals")).keys).toMatchObject([
      { attributes: { user: "Ann <b>&=:{}" }, refused: 4, count: 14 },
    ]);
    expect((await read("search=ANN")).keys).toHaveLength(1);
    expect((await read("rule=watched")).keys).toHaveLength(0);
    expect((await read("limit=1")).keys).toHaveLength(1);
    await expect(read("search=")).rejects.toThrow("400");
  },
);

vitest("with --monitoring off nothing is kept, and the routes say so", async () => {
  await using service = await startTestService({
    rules: rules as never,
    settings: { "admin-token": token, monitoring: "off" },
  });
  for (const path of ["/stats", "/keys/top", "/stats/stream"]) {
    await expect(get(service.http, path)).rejects.toThrow("404 monitoring-off");
  }
  expect((await check(service.http, { user: "ann" })).status).toBe(200);
  const metrics = await (await fetch(`${service.http}/metrics`)).text();
  expect(metrics).not.toContain("sluice_checks_total{");
  expect(metrics).toContain("sluice_rules 2");
});

/** A service in a given folder, so that another can be started in the same. */
function serviceIn(folder: string, store: string) {
  const flags = {
    port: "0",
    "grpc-port": "0",
    "data-folder": folder,
    "drain-timeout": "1s",
    "admin-token": token,
    store,
  };
  const settings = resolveSettings({ flags: { ...flags, "log-level": "silent" }, env: {} });
  return startService({ settings, log: createLog("silent") });
}

async function keepsItsFigures(store: string): Promise<void> {
  const folder = makeTempFolder("stats");
  try {
    const before = await serviceIn(folder, store);
    for (let i = 0; i < 7; i++) await check(before.http, { user: "ann", ip: "192.0.2.1", path: "/v1/x" });
    const counted = await until(
      "counted",
      () => get<StatsView>(before.http, "/stats"),
      (view) => requestsIn(view) === 7,
    );
    await before.close();
    const after = await serviceIn(folder, store);
    const stats = await until(
      "read",
      () => get<StatsView>(after.http, "/stats?window=day"),
      // Until the history is connected, the instance tells what it counted itself: nothing.
      ({ scope }) => scope === "fleet",
    );
    expect(stats.total).toMatchObject({ allowed: counted.total.allowed, refused: counted.total.refused });
    expect(stats.rules).toEqual(counted.rules);
    const keys = await get<TopKeysView>(after.http, "/keys/top?window=day");
    expect(keys.keys[0]).toMatchObject({ count: 7 });
    await after.close();
  } finally {
    removeTempFolder(folder);
  }
}

vitest("a restart keeps the figures in the data folder", () => keepsItsFigures("memory"));

onRedis("a restart keeps the figures in Redis", async () => {
  await using redis = await startRedis();
  await keepsItsFigures(redis.url);
});

function withoutCoverage(view: object): unknown {
  return JSON.parse(JSON.stringify(view, (name, value) => (name === "coveredMs" ? undefined : value)));
}

onRedis("two services on one Redis show the same figures and keys", async () => {
  await using redis = await startRedis();
  // A loaded machine must not have a policy answer.
  const settings = { store: redis.url, "admin-token": token, "store-deadline": "5s" };
  await using one = await startTestService({ rules: rules as never, settings });
  await using other = await startTestService({ rules: rules as never, settings });
  for (let i = 0; i < 12; i++) await check(one.http, { user: "ann" });
  for (let i = 0; i < 8; i++) await check(other.http, { user: i < 5 ? "ann" : "bob" });
  const comparable = async (http: string): Promise<unknown> => {
    const { atMs: _, total, ...stats } = await get<StatsView>(http, "/stats");
    const { atMs: __, ...keys } = await get<TopKeysView>(http, "/keys/top");
    // Between the two readings a minute may begin, and of the one that lasts more is counted.
    const points = total.points.filter(({ allowed, refused }) => allowed + refused > 0);
    return withoutCoverage({ stats, total: { ...total, points }, keys });
  };
  await until(
    "both instances are seen",
    () => get<StatsView>(one.http, "/stats"),
    (view) => view.instances === 2 && requestsIn(view) === 20,
  );
  // An instance shows a merge of keys for a few seconds.
  for (const { http } of [one, other]) {
    await until(
      "both write their keys",
      () => get<TopKeysView>(http, "/keys/top"),
      ({ keys }) => keys.reduce((sum, { count }) => sum + count, 0) === 20,
    );
  }
  const seen = await comparable(one.http);
  expect(await comparable(other.http)).toEqual(seen);
  expect(seen).toMatchObject({
    total: { allowed: 13, refused: 7 },
    keys: { maxError: 0, keys: [{ attributes: { user: "ann" }, count: 17, refused: 7 }, { count: 3 }] },
  });
});
