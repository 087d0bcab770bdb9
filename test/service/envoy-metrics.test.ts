/**
 * Metrics under the names of envoyproxy/ratelimit: a table of requests, and the series that it prints after them. With a running one that has
 * read `limits` (printed by SLUICE_PEER_ER=print), SLUICE_PEER_ER=HOST:PORT and SLUICE_PEER_ER_METRICS=URL hold the table against it as well.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { MOST_CLIENT_LABEL_SETS } from "../../packages/server/src/enforcement/envoy/reference-metrics.js";
import { freePort } from "../harness/free-port.js";
import { connectEnvoy, descriptor, type EnvoyClient } from "./envoy-client.js";
import { rawRequest } from "./raw-request.js";
import { type Json, startTestService } from "./running-service.js";

const limits = `
domain: metrics
descriptors:
  - { key: plain, rate_limit: { unit: year, requests_per_unit: 10 } }
  - { key: plain, value: known, rate_limit: { unit: year, requests_per_unit: 2 } }
  - { key: wild, value: "tmp-*", rate_limit: { unit: year, requests_per_unit: 1 } }
  - { key: shared, value: "tmp-*", share_threshold: true, value_to_metric: true, rate_limit: { unit: year, requests_per_unit: 100000 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: year, requests_per_unit: 1 } }
  - { key: detailed, detailed_metric: true, rate_limit: { unit: year, requests_per_unit: 10 } }
  - { key: detailedshared, value: "d-*", share_threshold: true, detailed_metric: true, rate_limit: { unit: year, requests_per_unit: 100000 } }
  - { key: told, value_to_metric: true, rate_limit: { unit: year, requests_per_unit: 10 } }
  - { key: wildtold, value: "w-*", value_to_metric: true, rate_limit: { unit: year, requests_per_unit: 10 } }
  - { key: blocked, rate_limit: { unit: year, requests_per_unit: 0 } }
  - { key: free, rate_limit: { unlimited: true } }
  - key: outer
    value_to_metric: true
    descriptors:
      - key: middle
        rate_limit: { unit: year, requests_per_unit: 10 }
        descriptors:
          - { key: inner, rate_limit: { unit: year, requests_per_unit: 10 } }
          - { key: fine, detailed_metric: true, rate_limit: { unit: year, requests_per_unit: 10 } }
`;

const run = `r${Date.now()}`;
const one = (entries: Record<string, string>, hits?: number, limit?: Json): Json =>
  descriptor(entries, { ...(hits !== undefined && { hitsAddend: { value: hits } }), ...(limit && { limit }) });

/** In order. `RUN` is of this run alone. */
const requests: Json[][] = [
  ...Array.from({ length: 12 }, () => [one({ plain: "RUN" })]),
  [one({ plain: "RUN-crossing" }, 6)],
  [one({ plain: "RUN-crossing" }, 7)],
  [one({ plain: "RUN-crossing" }, 5)],
  [one({ plain: "RUN-crossing" }, 0)],
  [one({ wild: "tmp-RUN" })],
  [one({ wild: "tmp-RUN" })],
  [one({ shared: "tmp-RUN" })],
  [one({ shared: "tmp-RUN-2" })],
  ...Array.from({ length: 3 }, () => [one({ shadow: "RUN" })]),
  [one({ shadow: "RUN-crossing" }, 4)],
  [one({ detailed: "RUN" })],
  [one({ detailed: "RUN:with|signs" })],
  [one({ detailed: "10.1.2.3-RUN" })],
  [one({ detailed: "dots.RUN.more.of.them" })],
  [one({ detailedshared: "d-RUN" })],
  [one({ told: "RUN" })],
  [one({ wildtold: "w-RUN" })],
  [one({ blocked: "RUN" })],
  [one({ free: "RUN" })],
  [one({ outer: "RUN", middle: "m" })],
  [one({ outer: "RUN", middle: "m", inner: "i" })],
  [one({ outer: "RUN", middle: "m", fine: "f" })],
  [one({ nobody: "RUN" })],
  [one({ brought: "RUN", more: "" }, undefined, { requestsPerUnit: 2, unit: 6 })],
  [one({ plain: "RUN-two" }), one({ told: "RUN-two" })],
];

/** total_hits, within_limit, over_limit, near_limit, shadow_mode of each label set, as the reference prints them. */
const expected: Record<string, string> = {
  "metrics blocked": "1 0 1 0 0",
  "metrics brought_RUN more": "1 1 0 0 0",
  "metrics detailed_10_1_2_3-RUN": "1 1 0 0 0",
  "metrics detailed_RUN": "1 1 0 0 0",
  "metrics detailed_RUN_with_signs": "1 1 0 0 0",
  "metrics detailed_dots RUN": "1 1 0 0 0",
  "metrics detailedshared_d-*": "1 1 0 0 0",
  "metrics outer_RUN middle": "2 2 0 0 0",
  "metrics outer_RUN middle_m": "1 1 0 0 0",
  "metrics plain": "31 17 10 4 0",
  "metrics shadow": "7 1 5 2 5",
  "metrics shared_tmp-*": "2 2 0 0 0",
  "metrics told_RUN": "1 1 0 0 0",
  "metrics told_RUN-two": "1 1 0 0 0",
  "metrics wild_tmp-*": "2 1 1 1 0",
  "metrics wildtold_w-RUN": "1 1 0 0 0",
};

const stats = ["total_hits", "within_limit", "over_limit", "near_limit", "shadow_mode"];

async function seriesAt(url: string): Promise<Map<string, number>> {
  const text = await (await fetch(url)).text();
  return new Map(
    [...text.matchAll(/^ratelimit_service_rate_limit_(\w+)\{([^}]*)\} (\S+)$/gm)].map(([, stat, labels, value]) => {
      const named = Object.fromEntries([...labels!.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, text]) => [name, text]));
      const place = [named.domain, named.key1, named.key2].filter((part) => part !== undefined).join(" ");
      return [`${place.replaceAll(run, "RUN")}|${stat}`, Number(value)];
    }),
  );
}

async function send(envoy: EnvoyClient): Promise<void> {
  for (const descriptors of requests) {
    const own = JSON.parse(JSON.stringify(descriptors).replaceAll("RUN", run)) as Json[];
    await envoy.shouldRateLimit({ domain: "metrics", descriptors: own });
  }
}

/** What was added between the two, by label set. */
function added(before: Map<string, number>, after: Map<string, number>): Record<string, string> {
  const places = new Set(Array.from(after.keys(), (name) => name.split("|")[0]!));
  const of = (place: string, stat: string): number =>
    (after.get(`${place}|${stat}`) ?? 0) - (before.get(`${place}|${stat}`) ?? 0);
  return Object.fromEntries(
    Array.from(places, (place) => [place, stats.map((stat) => of(place, stat)).join(" ")] as const)
      .filter(([place, counts]) => place.startsWith("metrics ") && counts !== "0 0 0 0 0")
      .sort(),
  );
}

const settings = { "envoy-config": "limits", "envoy-metrics": "true" };
const files = { "limits/metrics.yaml": limits };

test("hits are counted under the names, labels and rules of the reference", async () => {
  await using service = await startTestService({ files, settings });
  const envoy = connectEnvoy(service.grpc);
  await send(envoy);
  envoy.close();
  expect(added(new Map(), await seriesAt(`${service.http}/metrics`))).toEqual(expected);
  const text = await (await fetch(`${service.http}/metrics`)).text();
  expect(text).toContain(`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} ${requests.length}\n`);
  expect(text).toContain("ratelimit_service_config_load_success 1\n");
});

test("a flood of values fills a bounded number of series; limits of the files keep theirs", async () => {
  await using service = await startTestService({ files, settings });
  const envoy = connectEnvoy(service.grpc);
  const ask = (descriptors: Json[]) => envoy.shouldRateLimit({ domain: "metrics", descriptors });
  for (let i = 0; i < 30; i++) {
    await ask(Array.from({ length: 100 }, (_, k) => one({ told: `value-${i * 100 + k}` })));
  }
  await ask([one({ told: "x".repeat(10_000) })]);
  await ask([one({ shadow: "late" }), one({ any: "brought" }, undefined, { requestsPerUnit: 2, unit: 6 })]);
  envoy.close();
  const series = await seriesAt(`${service.http}/metrics`);
  const totals = [...series.keys()].filter((name) => name.endsWith("|total_hits"));
  expect(totals).toHaveLength(MOST_CLIENT_LABEL_SETS + 2);
  expect(series.get("metrics (other)|total_hits")).toBe(3_000 - MOST_CLIENT_LABEL_SETS + 2);
  expect(series.get("metrics shadow|total_hits")).toBe(1);
});

test("refused plain hits that are not counted are over the limit as a whole, however often they come", async () => {
  await using service = await startTestService({ files, settings });
  const envoy = connectEnvoy(service.grpc);
  for (const hitsAddend of [9, 3, 3]) {
    await envoy.shouldRateLimit({ domain: "metrics", descriptors: [one({ plain: "x" })], hitsAddend });
  }
  envoy.close();
  expect(added(new Map(), await seriesAt(`${service.http}/metrics`))).toEqual({ "metrics plain": "15 9 6 1 0" });
});

test("without the setting there are none; --metrics-address answers the same metrics, and nothing else", async () => {
  const port = await freePort();
  await using service = await startTestService({ files, settings: { "metrics-address": `127.0.0.1:${port}` } });
  const at = `http://127.0.0.1:${port}`;
  const text = await (await fetch(`${at}/metrics`)).text();
  expect(text).toContain("sluice_rules ");
  expect(text).not.toContain("ratelimit_service");
  const post = { method: "POST", body: "{}" };
  const statuses = [fetch(`${at}/v1/check`, post), fetch(`${at}/metrics`, post), fetch(`${at}/readyz`)];
  expect(await Promise.all(statuses.map(async (answer) => (await answer).status))).toEqual([405, 405, 404]);
  expect(service.http).not.toContain(String(port));
  for (const bytes of ["GET /metrics HTTP/1.1\r\n\r\n", "\0\0\r\n\r\n"]) {
    const { status, text: answer } = await rawRequest(port, bytes);
    expect([status, answer.includes("application/problem+json")]).toEqual([400, true]);
  }
});

const { SLUICE_PEER_ER: peer, SLUICE_PEER_ER_METRICS: peerMetrics } = process.env;
if (peer === "print") process.stdout.write(limits);
else if (peer !== undefined && peerMetrics !== undefined) {
  test(`the reference at ${peer} prints the same`, async () => {
    const before = await seriesAt(peerMetrics);
    const envoy = connectEnvoy(peer);
    await send(envoy);
    envoy.close();
    // Counters are shown when they are flushed.
    await sleep(2_500);
    expect(added(before, await seriesAt(peerMetrics))).toEqual(expected);
  });
}
