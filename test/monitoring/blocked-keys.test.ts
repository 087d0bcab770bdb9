/** Blocks through the service: the admin API and the command line, with counters in memory, in Redis and on a cluster. */
import type { Rule } from "sluice";
import { expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";
import { postJson, type RunningService, runSluice, startTestService } from "../service/running-service.js";

const token = "an-admin-token-for-tests";
const headers = { authorization: `Bearer ${token}` };
const rules: Rule[] = [
  { id: "login", key: ["ip"], algorithm: "rolling-window", limit: 1, window: "10m", blockFor: ["1h", "1d"] },
  { id: "rare", key: ["user"], algorithm: "fixed-window", limit: 5, window: "1d", blockFor: "1h" },
  { id: "plain", key: ["user"], algorithm: "fixed-window", limit: 5, window: "1d" },
];

const serviceOn = (store: string): Promise<RunningService> =>
  startTestService({ rules, settings: { store, "admin-token": token, "store-deadline": "2s" } });

async function blocked({ http }: RunningService, query = ""): Promise<Record<string, unknown>> {
  const reply = await fetch(`${http}/admin/v1/keys/blocked${query}`, { headers });
  expect(reply.status).toBe(200);
  return (await reply.json()) as Record<string, unknown>;
}

const check = async ({ http }: RunningService, ip: string): Promise<Record<string, unknown>> =>
  (await postJson(`${http}/v1/check`, { attributes: { ip } })).body as Record<string, unknown>;

async function blocksAreToldAndLifted(service: RunningService): Promise<void> {
  const admin = (path: string, body: object) => postJson(`${service.http}/admin/v1/keys/${path}`, body, headers);
  expect(await blocked(service)).toMatchObject({ keys: [], complete: true });
  expect(await check(service, "1.1.1.1")).toMatchObject({ allowed: true });
  expect(await check(service, "1.1.1.1")).toMatchObject({ allowed: false, reason: "limit", retryAfterMs: 3_600_000 });
  expect(await check(service, "1.1.1.1")).toMatchObject({ allowed: false, reason: "blocked" });

  // By hand, a key that sent nothing, with a value that could be mistaken for syntax.
  const attributes = { ip: "2::{2}*" };
  const byHand = await admin("block", { rule: "login", attributes, for: "2d" });
  expect([byHand.status, byHand.body]).toEqual([200, { blocked: true, blockedForMs: 172_800_000 }]);
  expect(await check(service, "2::{2}*")).toMatchObject({ allowed: false, reason: "blocked" });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const listed = await blocked(service, "?rule=login");
  expect(listed).toMatchObject({
    complete: true,
    keys: [
      { rule: "login", attributes },
      { rule: "login", attributes: { ip: "1.1.1.1" } },
    ],
  });
  const [first, second] = listed.keys as { leftMs: number }[];
  expect(first!.leftMs).toBeGreaterThan(172_000_000);
  expect(second!.leftMs).toBeGreaterThan(3_500_000);
  expect(second!.leftMs).toBeLessThanOrEqual(3_600_000);
  expect(await blocked(service, "?rule=plain")).toMatchObject({ keys: [] });

  expect((await admin("reset", { rule: "login", attributes: { ip: "1.1.1.1" } })).status).toBe(200);
  expect(await check(service, "1.1.1.1")).toMatchObject({ allowed: true });
}

/** More of one rule than a list tells, then one of another. */
async function oneRuleDoesNotHideAnother(service: RunningService): Promise<void> {
  const block = (rule: string, attributes: object) =>
    postJson(`${service.http}/admin/v1/keys/block`, { rule, attributes, for: "1d" }, headers);
  for (let i = 0; i < 1_200; i += 100) {
    await Promise.all(
      Array.from({ length: 100 }, (_, n) => block("login", { ip: `10.0.${(i + n) >> 8}.${(i + n) & 255}` })),
    );
  }
  expect((await block("rare", { user: "ann" })).status).toBe(200);
  const all = await blocked(service);
  expect([(all.keys as unknown[]).length, all.complete]).toEqual([1_000, false]);
  expect(await blocked(service, "?rule=rare")).toMatchObject({
    complete: true,
    keys: [{ attributes: { user: "ann" } }],
  });
}

test("in memory, a rule with many blocks does not hide those of another", async () => {
  await using service = await serviceOn("memory");
  await oneRuleDoesNotHideAnother(service);
});

test.skipIf(whyMissing("redis"))("in Redis, a rule with many blocks does not hide those of another", async () => {
  const redis = await startRedis();
  try {
    await using service = await serviceOn(redis.url);
    await oneRuleDoesNotHideAnother(service);
  } finally {
    await redis.stop();
  }
});

test("in memory, blocks are told, made by hand and lifted", async () => {
  await using service = await serviceOn("memory");
  await blocksAreToldAndLifted(service);
});

test.skipIf(whyMissing("redis"))("in Redis, blocks are told, made by hand and lifted", async () => {
  await using redis = await startRedis();
  await using service = await serviceOn(redis.url);
  await blocksAreToldAndLifted(service);
});

test.skipIf(whyMissing("redis"))("on a cluster, blocks are told, made by hand and lifted", async () => {
  await using cluster = await startCluster();
  await using service = await serviceOn(cluster.url);
  await blocksAreToldAndLifted(service);
});

test("a rule without blockFor, an unknown one and a bad duration are told as such, and nothing is blocked", async () => {
  await using service = await serviceOn("memory");
  const block = async (body: object): Promise<unknown[]> => {
    const reply = await postJson(`${service.http}/admin/v1/keys/block`, body, headers);
    const { code, detail } = reply.body as { code: string; detail: string };
    return [reply.status, code, detail];
  };
  expect(await block({ rule: "plain", attributes: { user: "u" }, for: "1h" })).toEqual([
    400,
    "invalid-request",
    "rule: expected a rule with blockFor, got plain; add blockFor to it, or an override with limit: 0 for the key",
  ]);
  expect((await block({ rule: "none", attributes: {}, for: "1h" })).slice(0, 2)).toEqual([404, "unknown-rule"]);
  expect((await block({ rule: "login", attributes: {}, for: "1h" }))[2]).toContain("attributes.ip: expected a value");
  for (const wrong of ["", "soon", "0s", "-1h"]) {
    expect((await block({ rule: "login", attributes: { ip: "x" }, for: wrong }))[2]).toBe(
      `for: expected a duration such as "1h", got ${JSON.stringify(wrong)}`,
    );
  }
  expect(await blocked(service)).toMatchObject({ keys: [] });
  expect((await fetch(`${service.http}/admin/v1/keys/blocked`)).status).toBe(401);
});

test("the command line blocks, lists and lifts", async () => {
  await using service = await serviceOn("memory");
  const sluice = (...args: string[]) => runSluice([...args, "--server", service.http, "--token", token]);
  expect((await sluice("blocked")).stdout).toBe("no key is blocked\n");
  expect(await sluice("block", "login", "ip=3.3.3.3", "--for", "1h")).toMatchObject({
    status: 0,
    stdout: "login: blocked for 1h\n",
  });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect((await sluice("blocked")).stdout).toMatch(/^rule +key +blocked for\nlogin +ip=3\.3\.3\.3 +(59|60) min\n$/);
  expect((await sluice("reset", "login", "ip=3.3.3.3")).status).toBe(0);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(JSON.parse((await sluice("blocked", "--json")).stdout)).toMatchObject({ keys: [], complete: true });
  expect((await sluice("block", "login", "ip=3.3.3.3")).status).toBe(2);
});
