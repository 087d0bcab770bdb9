/** A store that was configured wrongly: the program starts, and the cause that is told names the remedy, in the library and in the service's log. */
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { type RedisCluster, startCluster, until } from "../harness/redis-cluster.js";
import { type SentinelSet, startSentinels } from "../harness/redis-sentinels.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { startServiceProcess } from "../service/running-service.js";

const rules: Rule[] = [
  { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 5, window: "1h" },
  { id: "all", key: [], algorithm: "fixed-window", limit: 5_000, window: "1h" },
];

describe.skipIf(whyMissing("redis"))("a store that was configured wrongly", () => {
  let plain: RedisServer;
  let locked: RedisServer;
  let replica: RedisServer;
  let cluster: RedisCluster;
  let set: SentinelSet;

  beforeAll(async () => {
    [plain, locked, cluster, set] = await Promise.all([
      startRedis(),
      startRedis({ args: ["--requirepass", "secret"], cliArgs: ["--no-auth-warning", "-a", "secret"] }),
      startCluster(),
      startSentinels({ replicas: 1 }),
    ]);
    replica = await startRedis({ args: ["--replicaof", "127.0.0.1", String(plain.port)] });
  });
  afterAll(() => Promise.all([plain, locked, replica, cluster, set].map((started) => started?.stop())));

  /** A third of the slots is nobody's. */
  const halfACluster = async (): Promise<string> => {
    await cluster.onLeaders("CLUSTER", "DELSLOTSRANGE", "11000", "16383");
    return cluster.url;
  };
  const withoutALeader = async (): Promise<string> => {
    await cluster.leaders[1]!.kill();
    return cluster.url;
  };

  const mistakes: { name: string; url: () => string | Promise<string>; remedy: RegExp; users?: number }[] = [
    { name: "nobody listens", url: async () => `redis://127.0.0.1:${await freePort()}`, remedy: /check the address/ },
    {
      name: "nobody listens where a cluster should be",
      url: async () => `redis+cluster://127.0.0.1:${await freePort()}`,
      remedy: /none of the cluster's addresses answers/,
    },
    {
      name: "a wrong password",
      url: () => `redis://:wrong@127.0.0.1:${locked.port}`,
      remedy: /WRONGPASS.*check the user and the password/,
    },
    { name: "no password", url: () => `redis://127.0.0.1:${locked.port}`, remedy: /NOAUTH.*password/ },
    {
      name: "TLS to a server that speaks none",
      url: () => `rediss://127.0.0.1:${plain.port}`,
      remedy: /one side speaks TLS and the other does not/,
    },
    {
      name: "a cluster URL for a server that is none",
      url: () => `redis+cluster://127.0.0.1:${plain.port}`,
      remedy: /not part of a cluster: use redis:\/\//,
    },
    {
      name: "a node of a cluster given as one server",
      url: () => `redis://127.0.0.1:${cluster.leaders[0]!.port}`,
      remedy: /node of a Redis Cluster: use redis\+cluster:\/\//,
    },
    {
      name: "a Sentinel that does not know the master's name",
      url: () => `redis+sentinel://127.0.0.1:${set.sentinelPorts[0]}/nobody`,
      remedy: /no Sentinel knows a master of this name/,
    },
    {
      name: "a server given as Sentinel",
      url: () => `redis+sentinel://127.0.0.1:${plain.port}/main`,
      remedy: /check the addresses of the Sentinels/,
    },
    {
      name: "a database that the server does not have",
      url: () => `redis://127.0.0.1:${plain.port}/99`,
      remedy: /no database of that number/,
    },
    {
      name: "a replica given as leader",
      url: () => `redis://127.0.0.1:${replica.port}`,
      remedy: /READONLY.*is a replica: give the leader's address/,
    },
    // The last two: they harm the cluster.
    {
      name: "half a cluster",
      url: halfACluster,
      remedy: /CLUSTERDOWN.*some slots have no leader/,
      users: 40,
    },
    {
      name: "a cluster that lost a leader without replica",
      url: withoutALeader,
      remedy: /CLUSTERDOWN.*some slots have no leader|ECONNREFUSED.*check the address/,
      users: 40,
    },
  ];

  test.each(mistakes)(
    "$name: the program starts, policies answer, and the cause names the remedy",
    async ({ url, remedy, users = 1 }) => {
      const limiter = createLimiter({ store: redisStore(await url(), { deadlineMs: 1_500 }), rules });
      const causes: string[] = [];
      limiter.on("degraded", (cause) => causes.push(String(cause)));
      try {
        const decisions = await Promise.all(Array.from({ length: users }, (_, i) => limiter.check({ user: `u${i}` })));
        expect(decisions.filter(({ degraded }) => degraded === "local").length).toBeGreaterThan(0);
        await until("the outage is told", async () => causes.length > 0);
        for (let i = 0; i < 10; i++) await limiter.check({ user: `u${i}` });
        expect(causes).toHaveLength(1);
        expect(causes[0]).toMatch(remedy);
        expect(causes[0]).not.toContain("wrong@");
      } finally {
        await limiter.close();
      }
    },
  );

  test.each([
    ["redis+sentinel://127.0.0.1:26379", /master's name/],
    ["redis+cluster://127.0.0.1:6379/3", /no database number/],
    ["redis://127.0.0.1:99999", /a host and port/],
  ])("%s is refused before a connection is opened", (url, message) => {
    expect(() => redisStore(url)).toThrow(message);
  });

  test("the service starts all the same, and its log names the remedy", async () => {
    const service = await startServiceProcess({
      rules,
      settings: { store: `redis://:wrong@127.0.0.1:${locked.port}`, "store-deadline": "1s" },
    });
    await until("the log tells it", async () => service.output().includes("check the user and the password"));
    expect(service.output()).not.toContain("wrong@");
    await service.end();
  });

  test("a service whose database does not exist writes nothing to another one", async () => {
    await plain.cli("FLUSHALL");
    const service = await startServiceProcess({
      rules,
      settings: { store: `redis://127.0.0.1:${plain.port}/99`, "store-deadline": "1s" },
    });
    const body = JSON.stringify({ attributes: { user: "u" } });
    const check = () =>
      fetch(`${service.http}/v1/check`, { method: "POST", headers: { "content-type": "application/json" }, body });
    // Longer than the rule cache, the history and the count of instances take for their first writes.
    for (let i = 0; i < 30; i++) {
      expect(((await (await check()).json()) as { degraded?: string }).degraded).toBeDefined();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(service.output()).toContain("no database of that number");
    await service.end();
    expect(await plain.cli("DBSIZE")).toBe("0");
    // Not even a look: whoever reads database 0 would take somebody else's rules.
    const stats = await plain.cli("INFO", "commandstats");
    expect(stats).not.toMatch(/cmdstat_(evalsha|eval|get|set|hmget|hset|subscribe|publish):/);
  });
});
