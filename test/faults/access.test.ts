/**
 * TLS, and a Redis user with exactly the rights that docs/reliability.md lists, on one server, by Sentinel and on a cluster.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeCertificate, tlsArgs } from "../harness/certificates.js";
import { startCluster, until } from "../harness/redis-cluster.js";
import { startSentinels } from "../harness/redis-sentinels.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { startTestService } from "../service/running-service.js";

/** One rule of each stored form, so that every script's commands are asked for. */
const rules: Rule[] = [
  { id: "bucket", algorithm: "token-bucket", limit: 9, window: "1h" },
  { id: "gcra", algorithm: "gcra", limit: 9, window: "1h" },
  { id: "fixed", algorithm: "fixed-window", limit: 9, window: "1h" },
  { id: "sliding", algorithm: "sliding-counter", limit: 9, window: "1h" },
  { id: "sorted", algorithm: "rolling-window", limit: 9, window: "1h", storage: "sorted-set" },
  { id: "packed", algorithm: "rolling-window", limit: 9, window: "1h", storage: "packed" },
  { id: "places", algorithm: "concurrency", limit: 9 },
].map((rule) => ({ ...rule, key: ["user"], onStoreFailure: "local" }) as Rule);

/** All that a limiter does, by one who has a URL. */
async function useEverything(url: string, tls?: { ca: Buffer }): Promise<void> {
  const store = redisStore(url, { deadlineMs: 5_000, ...(tls && { tls }) });
  const limiter = createLimiter({ store, rules });
  const causes: string[] = [];
  limiter.on("degraded", (cause) => causes.push(String(cause)));
  try {
    expect(await limiter.ready()).toBe(true);
    const first = await limiter.check({ user: "ann" }, { id: "one" });
    const second = await limiter.check({ user: "ann" }, { cost: 2 });
    expect(causes).toEqual([]);
    expect([first, second].map(({ allowed, degraded, remaining }) => [allowed, degraded, remaining])).toEqual([
      [true, undefined, 8],
      [true, undefined, 6],
    ]);
    // Refused, and so an expiry is looked at.
    expect((await limiter.check({ user: "ann" }, { cost: 9 })).allowed).toBe(false);
    expect(await second.lease!.renew()).toBe(true);
    expect(await second.lease!.release()).toBe(true);
    expect(await limiter.refund("one")).toBe(true);
    expect(await limiter.refund(second)).toBe(true);
    const { rules: explained } = await limiter.explain({ user: "ann" });
    expect(explained.every(({ state }) => state !== undefined)).toBe(true);
    await limiter.reset("fixed", { user: "ann" });
    expect(causes).toEqual([]);
  } finally {
    await limiter.close();
  }
}

const laterRules: Rule[] = [
  { id: "hot", key: ["user"], algorithm: "rolling-window", limit: 100_000, window: "1h", prefetch: "1s" },
  {
    id: "tokens",
    key: ["org"],
    algorithm: "token-bucket",
    limit: 1_000,
    window: "1h",
    cost: { attribute: "tokens" },
    estimate: { default: 10, ttl: "1m" },
  },
  { id: "guard", key: ["ip"], algorithm: "rolling-window", limit: 1, window: "1h", blockFor: "1h" },
  { id: "paced", key: ["partner"], algorithm: "gcra", limit: 1, window: "20m", maxWait: "1h" },
  {
    id: "moving",
    key: ["tenant"],
    algorithm: "token-bucket",
    limit: 100,
    window: "1s",
    adapt: { signal: "reported", target: 0.5, min: 20, max: 200 },
  },
  { id: "account", key: ["account"], algorithm: "rolling-window", limit: 100, window: "1h", scope: "global" },
].map((rule) => ({ ...rule, onStoreFailure: "deny" }) as Rule);

/** Units ahead, reservations, blocks, turns, limits that move, a global rule: by one who has a URL, and is home to himself. */
async function useTheRest(url: string): Promise<void> {
  const open = () => redisStore(url, { deadlineMs: 5_000 });
  const shedding: Rule = { id: "shed", key: [], algorithm: "load-shedding", signal: ["reported"] };
  const options = { store: open(), globalStore: open(), region: "here", rules: [...laterRules, shedding] };
  const limiter = createLimiter(options);
  const causes: string[] = [];
  limiter.on("degraded", (cause) => causes.push(String(cause)));
  const allowed = async (attributes: Record<string, string>): Promise<boolean> =>
    (await limiter.check(attributes)).allowed;
  try {
    expect(await limiter.ready()).toBe(true);
    for (let round = 0; round < 500 && limiter.prefetchStats()!.units === 0; round++)
      await Promise.all(Array.from({ length: 20 }, () => limiter.check({ user: "ann" })));
    expect(limiter.prefetchStats()!.units).toBeGreaterThan(0);
    const { reservation } = await limiter.check({ org: "o" });
    expect(await limiter.settle(reservation!.id, { tokens: 7 })).toMatchObject({ settled: true });
    expect([await allowed({ ip: "1.2.3.4" }), await allowed({ ip: "1.2.3.4" })]).toEqual([true, false]);
    await limiter.block("guard", { ip: "1.2.3.5" }, 60_000);
    expect(await allowed({ ip: "1.2.3.5" })).toBe(false);
    await limiter.reset("guard", { ip: "1.2.3.4" });
    await limiter.check({ partner: "p" });
    const turn = await limiter.check({ partner: "p" });
    expect(turn.delayMs).toBeGreaterThan(0);
    expect(await limiter.refund(turn)).toBe(true);
    expect((await limiter.check({ partner: "p" })).delayMs).toBeGreaterThan(0);
    expect(await limiter.reportUtilisation(0.9, { source: "test" })).toBe(true);
    expect(await allowed({ tenant: "t" })).toBe(true);
    expect(await allowed({ account: "a" })).toBe(true);
    // Limits move, and learned costs are told, once in a while.
    await sleep(2_500);
    expect(causes).toEqual([]);
  } finally {
    await limiter.close();
  }
}

/** A block of docs/reliability.md under this heading, word by word. */
function documented(heading: string, nth = 0): string[] {
  const page = readFileSync(new URL("../../docs/reliability.md", import.meta.url), "utf8");
  const section = page.slice(page.indexOf(`### ${heading}`));
  const block = [...section.matchAll(/```\n(ACL SETUSER [\s\S]*?)```/g)][nth]![1]!;
  return block.trim().split(/\s+/);
}

const asDocumented = async (servers: readonly RedisServer[]): Promise<void> => {
  const user = documented("Rights of the library").map((word) => word.replace(">PASSWORD", ">secret"));
  await Promise.all(servers.map((server) => server.cli(...user)));
};

test("the rights of the library name every command of its scripts", () => {
  const folder = new URL("../../packages/sluice/src/store/redis/lua/", import.meta.url);
  const sources = readdirSync(folder).filter((file) => file.endsWith(".lua"));
  const called = sources.flatMap((file) =>
    Array.from(readFileSync(new URL(file, folder), "utf8").matchAll(/\bcall\('([A-Z]+)'/g), ([, name]) => name!),
  );
  expect(new Set(called).size).toBeGreaterThan(20);
  const granted = documented("Rights of the library");
  expect([...new Set(called)].filter((name) => !granted.includes(`+${name.toLowerCase()}`))).toEqual([]);
});

// Side by side, here and below: each test has servers of its own, which take longer to start than to be used.
describe
  .skipIf(whyMissing("redis"))
  .concurrent("a Redis user with the rights that are documented, and no others", () => {
    const denied = async (server: RedisServer): Promise<string> => await server.cli("ACL", "LOG");

    test("on one server", async () => {
      await using redis = await startRedis();
      await asDocumented([redis]);
      await redis.cli("ACL", "SETUSER", "default", "off").catch(() => "");
      await useEverything(`redis://sluice:secret@127.0.0.1:${redis.port}`);
    });

    test("units ahead, reservations, blocks, turns, moving limits and global rules", async () => {
      await using redis = await startRedis();
      await asDocumented([redis]);
      await useTheRest(`redis://sluice:secret@127.0.0.1:${redis.port}`);
      expect(await denied(redis)).toBe("");
    });

    test("on a cluster", async () => {
      await using cluster = await startCluster({ leaders: 3, replicasEach: 1 });
      await asDocumented(cluster.nodes);
      await useEverything(cluster.url.replace("://", "://sluice:secret@"));
      expect((await Promise.all(cluster.leaders.map(denied))).join("")).not.toMatch(/evalsha|script|cluster|zadd/);
    });

    test("by Sentinel, where the same user may ask who leads", async () => {
      const asked = documented("Rights at Sentinels").map((word) => word.replace(">PASSWORD", ">secret"));
      await using set = await startSentinels({
        replicas: 1,
        sentinelLines: [`user ${asked.slice(2).join(" ")}`],
      });
      await asDocumented([set.leader, ...set.replicas]);
      await useEverything(set.url.replace("://", "://sluice:secret@"));
    });

    test("the service, with what it needs beside", async () => {
      await using redis = await startRedis();
      await asDocumented([redis]);
      await redis.cli(...documented("Rights of the library", 1));
      const store = `redis://sluice:secret@127.0.0.1:${redis.port}`;
      await using service = await startTestService({
        settings: { store, "admin-token": "a-token-for-this-test", "store-deadline": "2s" },
      });
      const headers = { authorization: "Bearer a-token-for-this-test", "content-type": "application/json" };
      const admin = async (method: string, path: string, body?: object): Promise<number> =>
        (
          await fetch(`${service.http}/admin/v1${path}`, {
            method,
            headers,
            ...(body && { body: JSON.stringify(body) }),
          })
        ).status;
      expect(await admin("PUT", "/rules", { rules: rules.slice(0, 3) })).toBe(200);
      const check = await fetch(`${service.http}/v1/check`, {
        method: "POST",
        headers,
        body: JSON.stringify({ attributes: { user: "ann" } }),
      });
      expect(await check.json()).toMatchObject({ allowed: true, remaining: 8 });
      for (const path of ["/stats", "/keys/top", "/store"]) {
        await until(`${path} can be read`, async () => (await admin("GET", path)) === 200);
      }
      // Each second's figures are written once.
      await sleep(2_500);
      expect(await redis.cli("ACL", "LOG")).toBe("");
    });

    test("one right less is told with the remedy", async () => {
      await using redis = await startRedis();
      await asDocumented([redis]);
      await redis.cli("ACL", "SETUSER", "sluice", "-zadd");
      const limiter = createLimiter({
        store: redisStore(`redis://sluice:secret@127.0.0.1:${redis.port}`, { deadlineMs: 5_000 }),
        rules: rules.filter(({ id }) => id === "sorted").map((rule) => ({ ...rule, onStoreFailure: "allow" }) as Rule),
      });
      const causes: string[] = [];
      limiter.on("degraded", (cause) => causes.push(String(cause)));
      expect((await limiter.check({ user: "ann" })).degraded).toBe("allow");
      expect(causes.join()).toMatch(/can't run this command.*docs\/reliability\.md/);
      await limiter.close();
    });
  });

describe.skipIf(whyMissing("redis", "openssl")).concurrent("over TLS, with a private authority", async () => {
  if (whyMissing("redis", "openssl")) return;
  const certificate = makeCertificate();
  const { ca } = certificate;
  const { server, cli } = tlsArgs(certificate);
  const node = { args: server, cliArgs: cli };

  test("on one server, which a client without the authority does not trust", async () => {
    await using redis = await startRedis(node);
    await useEverything(`rediss://127.0.0.1:${redis.port}`, { ca });
    const distrustful = createLimiter({
      store: redisStore(`rediss://127.0.0.1:${redis.port}`, { deadlineMs: 2_000 }),
      rules,
    });
    const causes: string[] = [];
    distrustful.on("degraded", (cause) => causes.push(String(cause)));
    expect((await distrustful.check({ user: "ann" })).degraded).toBe("local");
    expect(causes[0]).toMatch(/certificate/);
    await distrustful.close();
  });

  test("on a cluster, between its nodes too", async () => {
    const args = [...server, "--tls-cluster", "yes"];
    await using cluster = await startCluster({ leaders: 3, replicasEach: 1, node: () => ({ args, cliArgs: cli }) });
    await useEverything(cluster.url.replace("redis+", "rediss+"), { ca });
  });

  test("by Sentinel, to the Sentinels and to the leader", async () => {
    const { certFile, keyFile } = certificate;
    await using set = await startSentinels({
      replicas: 1,
      node,
      sentinelLines: [
        "tls-port PORT",
        `tls-cert-file ${certFile}`,
        `tls-key-file ${keyFile}`,
        `tls-ca-cert-file ${certFile}`,
        "tls-auth-clients no",
        "tls-replication yes",
      ],
      sentinelCliArgs: cli,
    });
    await useEverything(set.url.replace("redis+", "rediss+"), { ca });
  });
});
