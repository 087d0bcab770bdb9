/**
 * The `prefix` of a store: fleets with different prefixes share a Redis and nothing in it. Redis itself is the judge: the user of each
 * fleet may touch no key, and no channel, outside its prefix, and Redis logs every attempt.
 */
import { readFileSync } from "node:fs";
import { Cluster } from "ioredis";
import { createLimiter, type Decision, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster, until } from "../harness/redis-cluster.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { startTestService } from "../service/running-service.js";

const counted = { key: ["user"], limit: 4, window: "365d" } as const;
/** One rule for each kind of key that the library writes. */
const rules: Rule[] = [
  { ...counted, id: "bucket", match: { area: "shop" }, algorithm: "token-bucket", candidate: { limit: 9 } },
  { ...counted, id: "packed", match: { area: "shop" }, algorithm: "rolling-window", storage: "packed" },
  { ...counted, id: "by-path", match: { area: "shop" }, key: ["path"], algorithm: "fixed-window" },
  { id: "places", match: { area: "shop" }, key: ["user"], algorithm: "concurrency", limit: 4, ttl: "1h" },
  { ...counted, id: "guard", match: { area: "login" }, limit: 1, algorithm: "gcra", blockFor: "1h" },
  {
    ...counted,
    id: "tokens",
    match: { area: "llm" },
    limit: 1_000,
    algorithm: "token-bucket",
    cost: { attribute: "tokens" },
    estimate: { default: 100, ttl: "5m" },
  },
  { ...counted, id: "hot", match: { area: "hot" }, limit: 1_000, algorithm: "rolling-window", prefetch: "200ms" },
  {
    ...counted,
    id: "paced",
    match: { area: "paced" },
    limit: 1,
    window: "30m",
    algorithm: "rolling-window",
    maxWait: "1h",
  },
  {
    ...counted,
    id: "tuned",
    match: { area: "tuned" },
    limit: 100,
    algorithm: "token-bucket",
    adapt: { signal: "reported", target: 0.8, min: 20, max: 200 },
  },
  { ...counted, id: "account", match: { area: "world" }, limit: 100, algorithm: "rolling-window", scope: "global" },
  { id: "load", match: { area: "load" }, key: [], algorithm: "load-shedding", signal: "reported" },
];

const ann = (area: string): Record<string, string> => ({ area, user: "ann", path: "/x" });

/** Everything that writes to Redis. A limiter that starts with empty counters decides like this, and no other does. */
async function useEverything(limiter: Limiter): Promise<void> {
  expect(await limiter.ready()).toBe(true);
  const decided = (decision: Decision): unknown[] => [decision.allowed, decision.remaining, decision.degraded];
  const first = await limiter.check(ann("shop"), { id: "order-1" });
  expect(decided(first)).toEqual([true, 3, undefined]);
  expect(decided(await limiter.check(ann("shop"), { id: "order-1" }))).toEqual([true, 3, undefined]);
  expect(await first.lease!.renew()).toBe(true);
  expect(await first.lease!.release()).toBe(true);
  expect(await limiter.refund("order-1")).toBe(true);
  expect(decided(await limiter.check(ann("shop")))).toEqual([true, 3, undefined]);
  expect(decided(await limiter.check(ann("shop"), { cost: 4 }))).toEqual([false, 3, undefined]);

  expect((await limiter.check(ann("login"))).allowed).toBe(true);
  expect(await limiter.check(ann("login"))).toMatchObject({ allowed: false, reason: "limit" });
  expect(await limiter.check(ann("login"))).toMatchObject({ allowed: false, reason: "blocked" });

  const { reservation } = await limiter.check(ann("llm"));
  expect(reservation!.held).toEqual({ tokens: 100 });
  expect(await limiter.settle(reservation!.id, { tokens: 30 })).toMatchObject({ charged: { tokens: 30 } });
  expect((await limiter.peek({ ...ann("llm"), tokens: 0 })).remaining).toBe(970);

  for (let i = 0; i < 5; i++) expect((await limiter.check(ann("hot"))).allowed).toBe(true);
  expect((await limiter.check(ann("paced"))).delayMs).toBe(0);
  const turn = await limiter.check(ann("paced"));
  expect(turn.delayMs).toBeGreaterThan(0);
  expect(await limiter.refund(turn)).toBe(true);

  expect((await limiter.check(ann("tuned"))).allowed).toBe(true);
  expect(await limiter.check(ann("world"))).toMatchObject({ allowed: true, limit: 100 });
  await limiter.reportUtilisation(0.5, { source: "test" });
  const { rules: explained } = await limiter.explain(ann("shop"));
  expect(explained.filter(({ matched }) => matched).every(({ state }) => state !== undefined)).toBe(true);
  await limiter.reset("packed", ann("shop"));
}

const limiterOn = (url: string, prefix?: string): Limiter => {
  const open = () => redisStore(url, { deadlineMs: 20_000, ...(prefix !== undefined && { prefix }) });
  return createLimiter({ store: open(), globalStore: open(), region: "here", rules });
};

/** The rights of docs/reliability.md, under a prefix. */
async function allow(servers: readonly RedisServer[], user: string): Promise<void> {
  const page = readFileSync(new URL("../../docs/reliability.md", import.meta.url), "utf8");
  const blocks = Array.from(page.matchAll(/```\nACL SETUSER sluice ([\s\S]*?)```/g), ([, words]) => words!);
  const words = `${blocks[0]} ${blocks[1]}`
    .trim()
    .split(/\s+/)
    .map((word) => word.replace(">PASSWORD", ">secret").replace(/^([~&])sluice:1:\*$/, `$1${user}:sluice:1:*`));
  expect(words.filter((word) => word.includes(`${user}:sluice:1:*`))).toHaveLength(2);
  await Promise.all(servers.map((server) => server.cli("ACL", "SETUSER", user, ...words)));
}

const asUser = (url: string, user: string): string => url.replace("://", `://${user}:secret@`);
const keysOf = async (servers: readonly RedisServer[]): Promise<string[]> =>
  (await Promise.all(servers.map((server) => server.cli("KEYS", "*")))).flatMap((text) => text.trim().split("\n"));
/** What Redis refused to the users, but for the name that ioredis gives to its connections, which needs no answer. */
const denials = async (servers: readonly RedisServer[]): Promise<string[]> => {
  const logs = await Promise.all(servers.map((server) => server.cli("ACL", "LOG")));
  const refused = logs.flatMap((log) => Array.from(log.matchAll(/^object\n(.*)$/gm), ([, object]) => object!));
  return refused.filter((object) => object !== "client|setname");
};

/** Without the random names of holds and instances. */
const kinds = (keys: readonly string[], prefix: string): string[] =>
  keys
    .filter((key) => key.startsWith(`${prefix}sluice:1:`))
    .map((key) => key.slice(prefix.length).replace(/(!h2=).*/, "$1…"))
    .sort();

/** Spelled out: counters under another name would begin anew. */
const onOneServer = [
  "sluice:1:{*}!3=order-1",
  "sluice:1:{*}!h2=…",
  "sluice:1:{path=/x}:by-path:f",
  "sluice:1:{user=ann}:bucket:B",
  "sluice:1:{user=ann}:bucket:b",
  "sluice:1:{user=ann}:guard:g",
  "sluice:1:{user=ann}:guard:x",
  "sluice:1:{user=ann}:hot:p",
  "sluice:1:{user=ann}:paced:p",
  "sluice:1:{user=ann}:paced:p^",
  "sluice:1:{user=ann}:places:c",
  "sluice:1:{user=ann}:tokens:b",
  "sluice:1:{user=ann}:tuned:b",
];
/** What instances and regions share is written by timers; some of it, and of units fetched ahead, lives for a second or less. */
const isShared = (key: string): boolean =>
  key.startsWith("sluice:1:{~") || key.includes(":account:") || key.endsWith(":hot:p~");

describe.skipIf(whyMissing("redis"))("several fleets on one Redis", () => {
  test("a prefix stands before every key of one server; without one the names are those of every version", async () => {
    await using redis = await startRedis();
    await Promise.all([allow([redis], "shop"), allow([redis], "blog")]);
    const fleets = [
      limiterOn(asUser(redis.url, "shop"), "shop:"),
      limiterOn(asUser(redis.url, "blog"), "blog:"),
      limiterOn(redis.url),
    ];
    try {
      // One after another: each finds empty counters, whatever the others charged, blocked and hold.
      for (const limiter of fleets) await useEverything(limiter);
      await until("limits are shared, and instances counted", async () => {
        const keys = await keysOf([redis]);
        const shared = ["{~}limits", "{~}instances"].map((name) => `sluice:1:${name}`);
        return ["shop:", "blog:", ""].every((prefix) => shared.every((name) => keys.includes(prefix + name)));
      });
      expect(await denials([redis])).toEqual([]);
      const keys = await keysOf([redis]);
      expect(keys.filter((key) => !/^((shop|blog):)?sluice:1:/.test(key))).toEqual([]);
      for (const prefix of ["shop:", "blog:", ""]) {
        const [shared, own] = [true, false].map((is) => kinds(keys, prefix).filter((key) => isShared(key) === is));
        expect(own).toEqual(onOneServer);
        expect(shared).toContain("sluice:1:{user=ann}:account:u");
        expect(
          shared!.filter(
            (key) =>
              !/\{~\}(freed|instances|limits|regions|utilisation)$|\{~tokens.*\}costs$|:account:[pu]~?$|:hot:p~$/.test(
                key,
              ),
          ),
        ).toEqual([]);
      }
    } finally {
      await Promise.all(fleets.map((limiter) => limiter.close()));
    }
  });

  test("on a cluster, too: hash tags stay what they were, so requests of one node are atomic", async () => {
    await using cluster = await startCluster();
    await Promise.all([allow(cluster.nodes, "shop"), allow(cluster.nodes, "blog")]);
    const fleets = [
      limiterOn(asUser(cluster.url, "shop"), "shop:"),
      limiterOn(asUser(cluster.url, "blog"), "blog:"),
      limiterOn(cluster.url),
    ];
    try {
      for (const limiter of fleets) await useEverything(limiter);
      const many = Array.from({ length: 200 }, (_, i) => ({ area: "shop", user: `user-${i}`, path: `/${i}` }));
      const guarantees = await Promise.all(
        fleets.map(async (limiter) => {
          const decisions = await Promise.all(many.map((attributes) => limiter.check(attributes)));
          expect(decisions.filter(({ allowed }) => !allowed)).toEqual([]);
          return decisions.map(({ guarantee }) => guarantee);
        }),
      );
      expect(guarantees[0]).toEqual(guarantees[2]);
      expect(guarantees[1]).toEqual(guarantees[2]);
      expect(new Set(guarantees[0])).toEqual(new Set(["atomic", "compensated"]));
      expect(await denials(cluster.nodes)).toEqual([]);
      const keys = await keysOf(cluster.leaders);
      expect(keys.filter((key) => !/^((shop|blog):)?sluice:1:/.test(key))).toEqual([]);
      const own = (await keysOf([cluster.leaders[0]!])).filter((key) => key.includes("{user=user-"));
      // Each counter lies on the same node under every prefix.
      const names = own.map((key) => key.replace(/^(shop|blog):/, ""));
      expect(names.length).toBe(3 * new Set(names).size);
    } finally {
      await Promise.all(fleets.map((limiter) => limiter.close()));
    }
  });

  test("a cluster client with a prefix of its own is refused: it would prefix only some of a script's keys", async () => {
    const client = new Cluster([{ host: "127.0.0.1", port: 1 }], { keyPrefix: "shop:", lazyConnect: true });
    expect(() => redisStore(client)).toThrow(/without keyPrefix; use redisStore\(client, \{ prefix \}\)/);
    client.disconnect();
  });

  test("two services: rules, announcements, counters, blocks, figures and the store's view are apart", async () => {
    await using redis = await startRedis();
    const start = async (user: string) => {
      await allow([redis], user);
      const token = "a-token-for-this-test";
      const service = await startTestService({
        settings: {
          store: asUser(redis.url, user),
          "store-prefix": `${user}:`,
          "store-deadline": "5s",
          "admin-token": token,
        },
      });
      const call = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
        const response = await fetch(`${service.http}${path}`, {
          method,
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          ...(body && { body: JSON.stringify(body) }),
        });
        expect(response.status, `${method} ${path}`).toBe(200);
        return (await response.json()) as Record<string, unknown>;
      };
      return { service, call };
    };
    const shop = await start("shop");
    const blog = await start("blog");
    try {
      const guard = { id: "guard", key: ["user"], algorithm: "gcra", window: "365d", blockFor: "1h" };
      await shop.call("PUT", "/admin/v1/rules", { rules: [{ ...guard, limit: 1 }] });
      await blog.call("PUT", "/admin/v1/rules", { rules: [{ ...guard, limit: 2 }] });
      const check = (of: typeof shop) => of.call("POST", "/v1/check", { attributes: { user: "ann" } });
      expect(await check(shop)).toMatchObject({ allowed: true, limit: 1 });
      expect(await check(shop)).toMatchObject({ allowed: false });
      expect(await check(blog)).toMatchObject({ allowed: true, limit: 2, remaining: 1 });
      expect(await shop.call("GET", "/admin/v1/keys/blocked")).toMatchObject({
        keys: [{ rule: "guard", attributes: { user: "ann" } }],
      });
      expect(await blog.call("GET", "/admin/v1/keys/blocked")).toMatchObject({ keys: [] });
      expect(await blog.call("GET", "/admin/v1/store")).toMatchObject({
        memory: { byRule: [{ rule: "guard", keys: 1 }] },
      });
      await until("both write their figures", async () => {
        const keys = await keysOf([redis]);
        return ["shop", "blog"].every((user) => keys.some((key) => key.startsWith(`${user}:sluice:1:history:`)));
      });
      const keys = await keysOf([redis]);
      expect(keys).toEqual(expect.arrayContaining(["shop:sluice:1:config:rules", "blog:sluice:1:config:rules"]));
      expect(keys.filter((key) => !/^(shop|blog):sluice:1:/.test(key))).toEqual([]);
      expect(await denials([redis])).toEqual([]);
    } finally {
      await Promise.all([shop.service.close(), blog.service.close()]);
    }
  });
});
