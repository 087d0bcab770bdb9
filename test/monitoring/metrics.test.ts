/** What /metrics tells, that docs/metrics.md lists the same, and that what is under deploy/ names only what exists. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Rule } from "sluice";
import { describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { type Json, postJson, startServiceProcess, startTestService } from "../service/running-service.js";

const root = new URL("../../", import.meta.url);
const textOf = (path: string): string => readFileSync(fileURLToPath(new URL(path, root)), "utf8");

const rules: Rule[] = [
  {
    id: "ab",
    match: { path: "/ab" },
    key: ["user"],
    algorithm: "fixed-window",
    limit: 1,
    window: "1h",
    variants: [
      { name: "control", weight: 50 },
      { name: "wide", weight: 50, limit: 1_000 },
    ],
  },
  { id: "places", match: { path: "/job" }, key: [], algorithm: "concurrency", limit: 5, ttl: "1m" },
] as never;

const token = "an-admin-token-for-tests";

const scrape = async (http: string): Promise<string> => (await fetch(`${http}/metrics`)).text();

/** The sum of a metric's samples whose labels hold all of these; undefined if there is none. */
function sampleOf(metrics: string, name: string, labels: Record<string, string> = {}): number | undefined {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const found = [...metrics.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, "gm"))]
    .filter(([, given = ""]) => wanted.every((one) => given.split(",").includes(one)))
    .map(([, , value]) => Number(value));
  return found.length === 0 ? undefined : found.reduce((sum, value) => sum + value, 0);
}

test("docs/metrics.md lists every metric with its type and meaning, word for word", async () => {
  await using service = await startTestService({ rules, settings: { record: makeTempFolder("recording") } });
  const metrics = await scrape(service.http);
  const told = [...metrics.matchAll(/^# HELP (sluice_\S+) (.+)\n# TYPE \S+ (\S+)$/gm)].map(
    ([, name, help, type]) => `${name} (${type}): ${help}`,
  );
  const listed = [...textOf("docs/metrics.md").matchAll(/^\| `(sluice_\w+)` \| (\w+) \|[^|]*\| (.+) \|$/gm)].map(
    ([, name, type, help]) => `${name} (${type}): ${help}`,
  );
  expect(told.length).toBeGreaterThan(15);
  expect(listed.sort()).toEqual(told.sort());
});

test("every metric that Prometheus's rules and the Grafana dashboard name is told by the service", async () => {
  await using service = await startTestService({ rules });
  const metrics = await scrape(service.http);
  const known = new Set<string>();
  for (const [, name, type] of metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    known.add(name!);
    if (type === "histogram") for (const part of ["bucket", "sum", "count"]) known.add(`${name}_${part}`);
  }
  const alerts = parseYaml(textOf("deploy/prometheus/sluice.rules.yml")) as Json;
  const ruleList: Json[] = alerts.groups.flatMap((group: Json) => group.rules);
  for (const { expr, record, alert, annotations } of ruleList) {
    expect(typeof expr).toBe("string");
    if (record !== undefined) known.add(record);
    else expect([alert, typeof annotations.summary]).toEqual([expect.any(String), "string"]);
  }
  const dashboards = readdirSync(fileURLToPath(new URL("deploy/grafana/", root)));
  const panels: Json[] = dashboards.flatMap((file) => JSON.parse(textOf(`deploy/grafana/${file}`)).panels);
  const expressions: string[] = [
    ...ruleList.map(({ expr }) => expr),
    ...panels.flatMap(({ targets }) => targets.map(({ expr }: Json) => expr)),
  ];
  const named = expressions.flatMap((expr) => expr.match(/\bsluice[_:][a-z0-9_:]+/g) ?? []);
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test("checks are told by variant, and leases held rise and fall", async () => {
  await using service = await startTestService({ rules });
  for (let i = 0; i < 20; i++)
    for (let j = 0; j < 2; j++)
      await postJson(`${service.http}/v1/check`, { attributes: { user: `u${i}`, path: "/ab" } });
  const leases: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { body } = await postJson(`${service.http}/v1/check`, { attributes: { path: "/job" } });
    leases.push(body.lease.id);
  }
  const metrics = await scrape(service.http);
  const ofVariant = (variant: string, outcome: string) =>
    sampleOf(metrics, "sluice_checks_total", { rule: "ab", variant, outcome }) ?? 0;
  expect(ofVariant("control", "refused")).toBeGreaterThan(0);
  expect(ofVariant("control", "refused")).toBe(ofVariant("control", "allowed"));
  expect(ofVariant("wide", "refused")).toBe(0);
  expect(ofVariant("wide", "allowed") + 2 * ofVariant("control", "allowed")).toBe(40);
  expect(sampleOf(metrics, "sluice_leases_held", { rule: "places" })).toBe(3);
  await postJson(`${service.http}/v1/release`, { lease: leases[0] });
  expect(sampleOf(await scrape(service.http), "sluice_leases_held", { rule: "places" })).toBe(2);
});

test("requests that no rule applied to are counted by transport", async () => {
  const rule = { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 5, window: "1h" } as const;
  await using service = await startTestService({ rules: [rule] });
  const ask = (attributes: Record<string, string>) => postJson(`${service.http}/v1/check`, { attributes });
  await ask({ user: "ann" });
  // Misspelt, and absent.
  await ask({ usr: "ann" });
  await ask({});
  await postJson(`${service.http}/v1/check/batch`, { requests: [{ attributes: {} }, { attributes: { user: "bob" } }] });
  const json = { domain: "shop", descriptors: [{ entries: [{ key: "usr", value: "x" }] }] };
  expect((await postJson(`${service.http}/json`, json)).body.overallCode).toBe("OK");
  await fetch(`${service.http}/v1/forward-auth`);
  const metrics = await scrape(service.http);
  expect(sampleOf(metrics, "sluice_requests_unmatched_total", { transport: "http" })).toBe(4);
  expect(sampleOf(metrics, "sluice_requests_unmatched_total", { transport: "forward-auth" })).toBe(1);
  expect(sampleOf(metrics, "sluice_requests_total", { transport: "http", outcome: "allowed" })).toBe(6);
});

describe.skipIf(whyMissing("redis"))("on Redis", () => {
  test("store calls, batches, errors, the breaker and failure policies are told", async () => {
    await using redis = await startRedis();
    await using service = await startTestService({ rules, settings: { store: redis.url, "store-deadline": "1s" } });
    const requests = Array.from({ length: 50 }, (_, i) => ({ attributes: { user: `u${i}`, path: "/ab" } }));
    await postJson(`${service.http}/v1/check/batch`, { requests });
    const before = await scrape(service.http);
    expect(sampleOf(before, "sluice_store_calls_total")).toBeGreaterThan(0);
    expect(sampleOf(before, "sluice_store_batch_size_sum")).toBeGreaterThanOrEqual(50);
    expect(sampleOf(before, "sluice_store_batch_size_count")).toBeLessThan(50);
    expect(sampleOf(before, "sluice_store_call_seconds_count")).toBe(sampleOf(before, "sluice_store_calls_total"));
    expect(sampleOf(before, "sluice_store_breaker_state")).toBe(0);
    redis.pause();
    try {
      let during = before;
      let checks = 0;
      // A connection that is given up meanwhile is no failure that the breaker counts.
      for (; checks < 6 || sampleOf(during, "sluice_store_breaker_state") === 0; checks++) {
        await postJson(`${service.http}/v1/check`, { attributes: { user: "v", path: "/ab" } });
        during = await scrape(service.http);
      }
      expect(sampleOf(during, "sluice_store_errors_total")).toBeGreaterThanOrEqual(3);
      expect(sampleOf(during, "sluice_store_degraded")).toBe(1);
      expect(sampleOf(during, "sluice_degraded_decisions_total", { policy: "local" })).toBe(checks);
    } finally {
      redis.resume();
    }
  });

  test("units that were fetched ahead, and what they decided, are told", async () => {
    await using redis = await startRedis();
    const rule = { id: "hot", key: ["user"], algorithm: "rolling-window", limit: 1_000_000, window: "1m" } as const;
    await using service = await startTestService({
      rules: [{ ...rule, prefetch: "30s" }],
      settings: { store: redis.url, "store-deadline": "2s" },
    });
    const requests = Array.from({ length: 100 }, () => ({ attributes: { user: "ann" } }));
    let metrics = await scrape(service.http);
    for (let i = 0; i < 100 && !sampleOf(metrics, "sluice_prefetch_decisions_total"); i++) {
      await postJson(`${service.http}/v1/check/batch`, { requests });
      metrics = await scrape(service.http);
    }
    const decided = sampleOf(metrics, "sluice_prefetch_decisions_total")!;
    expect(decided).toBeGreaterThan(0);
    expect(sampleOf(metrics, "sluice_prefetch_fetches_total")).toBeGreaterThan(0);
    expect(sampleOf(metrics, "sluice_prefetch_units")).toBeGreaterThan(0);
    expect(sampleOf(metrics, "sluice_prefetch_keys")).toBe(1);
    expect(sampleOf(metrics, "sluice_checks_total", { rule: "hot", outcome: "allowed" })).toBeGreaterThanOrEqual(
      decided,
    );
  });

  test("of two workers, counts are added and versions are not", async () => {
    await using redis = await startRedis();
    const service = await startServiceProcess({
      rules,
      settings: { store: redis.url, workers: "2", "store-deadline": "2s", "admin-token": token },
    });
    try {
      for (let i = 0; i < 30; i++)
        await postJson(
          `${service.http}/v1/check`,
          { attributes: { user: `u${i}`, path: "/ab" } },
          { connection: "close" },
        );
      await sleep(100);
      const metrics = await scrape(service.http);
      expect(sampleOf(metrics, "sluice_checks_total", { rule: "ab", outcome: "allowed" })).toBe(30);
      expect(sampleOf(metrics, "sluice_rules")).toBe(2);
      expect(sampleOf(metrics, "sluice_rules_version")).toBe(1);
      expect(sampleOf(metrics, "sluice_decision_seconds_count")).toBe(30);
      const headers = { authorization: `Bearer ${token}` };
      let stats: Json;
      // Each worker writes by itself, once a second: one that was idle may be heard of last.
      for (let i = 0; i < 100 && (stats?.total.allowed !== 30 || stats.instances !== 2); i++) {
        await sleep(100);
        stats = await (await fetch(`${service.http}/admin/v1/stats`, { headers })).json();
      }
      expect(stats).toMatchObject({ instances: 2, total: { allowed: 30, refused: 0 } });
    } finally {
      await service.end();
    }
  });
});
