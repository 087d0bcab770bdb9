/** `sluice serve --record` and what reads it, on the memory store and on a real Redis; `sluice suggest --rule` asks the same service. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Rule } from "sluice";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { startRedis } from "../harness/redis-server.js";
import { type Json, postJson, runSluice, startTestService } from "../service/running-service.js";

const rules: Rule[] = [
  { id: "per-user", match: { path: "/a" }, key: ["user"], algorithm: "rolling-window", limit: 5, window: "1h" },
  { id: "bucket", match: { path: "/b" }, key: ["user"], algorithm: "token-bucket", limit: 9, window: "1h" },
  { id: "places", match: { path: "/c" }, key: ["user"], algorithm: "concurrency", limit: 2, ttl: "1m" },
];

/** Checks, a refund, releases and a reset, one after the other; how many requests were refused. */
async function useService(http: string, token: string): Promise<number> {
  let refused = 0;
  const check = async (body: Json): Promise<Json> => {
    const { body: decision } = await postJson(`${http}/v1/check`, body);
    if (!decision.allowed) refused++;
    return decision;
  };
  for (let i = 0; i < 8; i++) await check({ attributes: { user: "ada", path: "/a" } });
  for (let i = 0; i < 12; i++) await check({ attributes: { user: "ada", path: "/b" }, id: `id-${i}` });
  expect((await postJson(`${http}/v1/refund`, { id: "id-3" })).body).toEqual({ refunded: true });
  for (let i = 0; i < 4; i++) await check({ attributes: { user: "ada", path: "/b" } });
  for (let i = 0; i < 6; i++) {
    const { lease } = await check({ attributes: { user: "ada", path: "/c" } });
    if (lease !== undefined && i > 0) await postJson(`${http}/v1/release`, { lease: lease.id });
  }
  await postJson(
    `${http}/admin/v1/keys/reset`,
    { rule: "per-user", attributes: { user: "ada" } },
    { authorization: `Bearer ${token}` },
  );
  for (let i = 0; i < 7; i++) await check({ attributes: { user: "ada", path: "/a" } });
  await check({ attributes: { user: "ada", path: "/none" } });
  return refused;
}

/** Instances share their top keys every few seconds. */
async function untilShared(http: string, token: string): Promise<void> {
  for (;;) {
    const headers = { authorization: `Bearer ${token}` };
    const view = (await (await fetch(`${http}/admin/v1/keys/top?window=hour&rule=bucket`, { headers })).json()) as Json;
    if (view.keys.length > 0) return;
    await sleep(200);
  }
}

async function recordAndVerify(store: string): Promise<void> {
  const folder = makeTempFolder("recorded");
  const service = await startTestService({ rules, settings: { record: folder, store, "record-hash": "user" } });
  const token = readFileSync(service.adminTokenFile!, "utf8").trim();
  const refused = await useService(service.http, token);
  await service.close();
  const verified = await runSluice(["simulate", "--verify", "--json", folder]);
  expect(verified.stderr).toBe("");
  expect(JSON.parse(verified.stdout)).toMatchObject({ decisions: 38, differences: 0, uncertain: 0, byPolicy: 0 });
  expect(verified.status).toBe(0);
  const draft = join(makeTempFolder("draft"), "rules.json");
  writeFileSync(draft, JSON.stringify({ rules }));
  const simulated = await runSluice(["simulate", "--rules", draft, "--json", folder]);
  expect(JSON.parse(simulated.stdout)).toMatchObject({ total: 38, refused });
  expect(readdirSync(folder)).toHaveLength(1);
}

test("suggest --rule reads the busiest keys of a running service", async () => {
  await using service = await startTestService({ rules });
  const token = readFileSync(service.adminTokenFile!, "utf8").trim();
  await useService(service.http, token);
  await untilShared(service.http, token);
  const asked = ["--history", "hour", "--json", "--server", service.http, "--token", token];
  const bucket = await runSluice(["suggest", "--rule", "bucket", ...asked]);
  expect(JSON.parse(bucket.stdout)).toMatchObject({ rule: "bucket", limit: 9, keys: 1, keysRefused: 1, max: 9 });
  expect((await runSluice(["suggest", "--rule", "none", ...asked])).status).toBe(1);
  expect((await runSluice(["suggest"])).status).toBe(2);
});

test("a service that counts in memory records what simulate --verify makes again", async () => {
  await recordAndVerify("memory");
});

describe.skipIf(whyMissing("redis") !== undefined)("on Redis", () => {
  test("a service that counts in Redis records what simulate --verify makes again", async () => {
    await using redis = await startRedis();
    await recordAndVerify(redis.url);
  });
});
