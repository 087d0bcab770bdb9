/** Database, Redis or both gone, for a running instance, for one that starts again and for one that starts for the first time. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { digestOf } from "../../packages/server/src/configuration/document-text.js";
import { redisKeys } from "../../packages/server/src/instance/redis-keys.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type PostgresServer, startPostgres } from "../harness/postgres.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { eventually, type Instance, perUser, startInstance } from "./instance.js";

const { rules: RULES_KEY } = redisKeys();

describe.skipIf(whyMissing("redis", "postgresql"))("rules through outages", () => {
  let postgres: PostgresServer;
  let redis: RedisServer;
  let database: string;
  let made = 0;
  const running: Instance[] = [];

  const start = async (more: Parameters<typeof startInstance>[0] = {}) => {
    const instance = await startInstance({ database, redisUrl: redis.url, ...more });
    running.push(instance);
    return instance;
  };
  const limitOf = (instance: Instance) => instance.configuration.current.rules[0]?.limit;
  const put = async (instance: Instance, limit: number) =>
    await instance.call("PUT", "/rules", { body: [perUser(limit)] });
  /** What a client of this instance is told its limit is: the whole way, not what the configuration believes. */
  const enforced = async (instance: Instance) => (await instance.limiter.peek({ user: "ann" })).limit;

  beforeAll(async () => {
    [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  });
  afterAll(() => Promise.all([postgres?.stop(), redis?.stop()]));
  beforeEach(async () => {
    await Promise.all(running.splice(0).map((instance) => instance.stop()));
    await Promise.all([postgres.restart(), redis.restart()]);
    database = postgres.createDatabase(`outage_${++made}`);
  });
  afterAll(() => Promise.all(running.splice(0).map((instance) => instance.stop())));

  test("the database gone: old, restarted and new instances go on with the cache, changes are refused, and it recovers", async () => {
    const old = await start();
    await put(old, 10);
    await postgres.kill();

    expect((await put(old, 11)).body).toMatchObject({ status: 503, code: "database-unavailable" });
    await eventually("it says so", () => old.configuration.status().database === "down");
    const restarted = await start({ dataFolder: old.dataFolder });
    const fresh = await start();
    for (const instance of [old, restarted, fresh]) {
      expect(await enforced(instance)).toBe(10);
      expect(instance.configuration.status()).toMatchObject({ loaded: true, database: "down", cache: "up" });
      expect(instance.configuration.status().lastError).toContain("postgres://");
    }
    expect(fresh.configuration.status().source).toBe("cache");

    await postgres.restart();
    await eventually("a change works again", async () => (await put(fresh, 12)).status === 200);
    for (const instance of [old, restarted, fresh]) {
      await eventually("all have it", async () => (await enforced(instance)) === 12);
      await eventually("all say that they are well", () => instance.configuration.status().lastError === undefined);
    }
  });

  test("Redis gone: changes go on, others find them by the poll, new instances read the database, and the cache is refilled", async () => {
    const old = await start();
    await put(old, 10);
    await redis.kill();
    await eventually("it says so", () => old.configuration.status().cache === "down");

    const other = await start();
    expect(other.configuration.status()).toMatchObject({ source: "database", database: "up", cache: "down" });
    expect((await put(old, 11)).status).toBe(200);
    expect(await enforced(old)).toBe(11);
    await eventually("the other finds it", async () => (await enforced(other)) === 11);

    await redis.restart();
    await eventually("the cache has it", async () => (await redis.cli("hget", RULES_KEY, "version")) === "2");
    await eventually("it says so", () => old.configuration.status().cache === "up");
  });

  test("a change is accepted and spreads while Redis is frozen rather than gone", async () => {
    const old = await start();
    const other = await start();
    await put(old, 10);
    await eventually("the other has it", async () => (await enforced(other)) === 10);
    redis.pause();
    expect((await put(old, 11)).status).toBe(200);
    expect(await enforced(old)).toBe(11);
    await eventually("the other finds it", async () => (await enforced(other)) === 11);
    redis.resume();
  });

  test("both gone: the last good rules stay, also over a restart; one that never had any says that it is not ready", async () => {
    const old = await start();
    await put(old, 10);
    // Written beside the answer, not before it: the database is what makes a change last.
    await eventually("the snapshot is written", () => existsSync(join(old.dataFolder, "rules-snapshot")));
    await Promise.all([postgres.kill(), redis.kill()]);
    await eventually("it says so", () => old.configuration.status().database === "down");
    expect(await enforced(old)).toBe(10);

    const restarted = await start({ dataFolder: old.dataFolder });
    expect(await enforced(restarted)).toBe(10);
    expect(restarted.configuration.status()).toMatchObject({ loaded: true, source: "snapshot", version: 1 });
    const fresh = await start();
    expect(fresh.configuration.status()).toMatchObject({ loaded: false, version: 0, database: "down", cache: "down" });
    expect(fresh.configuration.current).toEqual({ rules: [], version: 0 });

    await Promise.all([postgres.restart(), redis.restart()]);
    await eventually("the new one finds rules", async () => (await enforced(fresh)) === 10);
    await eventually("the snapshot is confirmed", () => restarted.configuration.status().source === "database");
    expect((await put(restarted, 11)).status).toBe(200);
    for (const instance of [old, fresh]) await eventually("all have it", async () => (await enforced(instance)) === 11);
  });

  test("a snapshot of another database is not used", async () => {
    const old = await start();
    await put(old, 10);
    // Written beside the answer, not before it: the database is what makes a change last.
    await eventually("the snapshot is written", () => existsSync(join(old.dataFolder, "rules-snapshot")));
    await Promise.all([postgres.kill(), redis.kill()]);
    const moved = await start({ dataFolder: old.dataFolder, database: `${database}_moved` });
    expect(moved.configuration.status().loaded).toBe(false);
    await postgres.restart();
  });

  test("a change that no announcement told of is found by the poll", async () => {
    const instance = await start();
    await put(instance, 10);
    const { repository } = instance.configuration;
    const document = `{"rules":[\n${JSON.stringify(perUser(33))}\n]}\n`;
    const diff = { added: 0, removed: 0, changed: 1, reordered: false, changes: [] };
    const change = {
      base: 1,
      author: "x",
      message: "",
      kind: "document",
      document,
      digest: digestOf(document),
      diff,
    } as const;
    await repository!.commit(change);
    await eventually("it is in force", () => limitOf(instance) === 33);
  });

  test("an invalid document in the database replaces nothing, is told, and can be mended by a change", async () => {
    const instance = await start();
    await put(instance, 10);
    postgres.sql(
      database,
      `INSERT INTO sluice_versions (version, digest, created_at_ms, author, message, kind, diff, document)
       VALUES (2, 'd', 0, 'by hand', '', 'document', '{}', '{"rules":[{"id":"x"}]}')`,
    );
    await eventually("it says so", () =>
      /version 2 is not usable/.test(instance.configuration.status().lastError ?? ""),
    );
    expect(await enforced(instance)).toBe(10);
    await eventually("the snapshot is written", () => existsSync(join(instance.dataFolder, "rules-snapshot")));
    const restarted = await start({ dataFolder: instance.dataFolder });
    expect(await enforced(restarted)).toBe(10);
    expect(instance.said.filter((line) => line.includes("rules were refused"))).toHaveLength(1);

    expect((await put(instance, 12)).body).toMatchObject({ version: 3 });
    expect(instance.configuration.status().lastError).toBeUndefined();
    await eventually("the other has it", async () => (await enforced(restarted)) === 12);
  });

  describe("a poisoned cache", () => {
    const poisons = [
      { name: "an invalid document", document: '{"rules":[{"id":"x"}]}' },
      { name: "no JSON", document: "oops" },
      { name: "a deep nesting", document: `${"[".repeat(50_000)}` },
    ];
    test.each(poisons)("with $name replaces nothing while the database is down", async ({ document }) => {
      const instance = await start();
      await put(instance, 10);
      await postgres.kill();
      await redis.cli("hset", RULES_KEY, "version", "9", "digest", digestOf(document), "document", document);
      await eventually("it is noticed", () => instance.said.some((line) => line.includes("rules were refused")));
      expect(await enforced(instance)).toBe(10);
      expect(instance.configuration.status().version).toBe(1);
    });

    test("with a text that was cut is not believed", async () => {
      const instance = await start();
      await put(instance, 10);
      await postgres.kill();
      await redis.cli("hset", RULES_KEY, "version", "9", "document", '{"rules":[]}');
      await eventually("it is noticed", () => instance.said.some((line) => line.includes("not what was written")));
      expect(await enforced(instance)).toBe(10);
    });

    test("with valid rules that the database never had is not believed while the database is up", async () => {
      const instance = await start();
      await put(instance, 10);
      const document = `{"rules":[]}`;
      await redis.cli("hset", RULES_KEY, "version", "2", "digest", digestOf(document), "document", document);
      await redis.cli("publish", "sluice:1:config:changed", "2");
      const fresh = await start();
      expect(await enforced(fresh)).toBe(10);
      expect(await enforced(instance)).toBe(10);
    });

    test("of another type is passed over", async () => {
      const instance = await start();
      await put(instance, 10);
      await redis.cli("del", RULES_KEY);
      await redis.cli("set", RULES_KEY, "a string");
      expect(await enforced(await start())).toBe(10);
      expect((await put(instance, 11)).status).toBe(200);
    });
  });

  test("a database that was restored to an older version is followed", async () => {
    const instance = await start();
    await put(instance, 10);
    await put(instance, 11);
    await put(instance, 12);
    postgres.sql(database, "DELETE FROM sluice_versions WHERE version > 1");
    await eventually("it goes back", async () => (await enforced(instance)) === 10);
    expect((await put(instance, 13)).body).toMatchObject({ version: 2 });
    expect(await enforced(instance)).toBe(13);
    expect(await enforced(await start())).toBe(13);
  });

  test("the cache has a time to live, which lasts as long as an instance runs", async () => {
    const instance = await start({ cacheTtlMs: 800 });
    await put(instance, 10);
    const ttl = Number(await redis.cli("pttl", RULES_KEY));
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(800);
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(await redis.cli("hget", RULES_KEY, "version")).toBe("1");
    await Promise.all(running.splice(0).map((one) => one.stop()));
    await eventually("it is gone", async () => (await redis.cli("exists", RULES_KEY)) === "0");
  });

  test("scripts can be loaded again whenever Redis comes back", async () => {
    let ready = 0;
    await start({ onRedisReady: () => ready++ });
    const before = ready;
    expect(before).toBeGreaterThan(0);
    await redis.restart();
    await eventually("it is told", () => ready > before);
  });

  test("eight instances that start at once on an empty database agree on one version of the starter rules", async () => {
    const eight = await Promise.all(Array.from({ length: 8 }, () => start({ starterRules: [perUser(5)] })));
    for (const { configuration } of eight) expect(configuration.current).toEqual({ version: 1, rules: [perUser(5)] });
    expect((await eight[0]!.call("GET", "/versions")).body.versions).toHaveLength(1);
  });
});
