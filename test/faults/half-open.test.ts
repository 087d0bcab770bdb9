/**
 * Connections that go silent without ending (half-open): the old ones swallow every byte, new ones work. Each kind of client made from
 * a URL gives the silent connection up and connects anew; a subscription too.
 */
import { execFileSync } from "node:child_process";
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test } from "vitest";
import { RuleCache } from "../../packages/server/src/configuration/rule-cache.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { blockEventLoop } from "../harness/block-event-loop.js";
import { freePort } from "../harness/free-port.js";
import { type RedisCluster, startCluster, until } from "../harness/redis-cluster.js";
import { startSentinels } from "../harness/redis-sentinels.js";
import { startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy, type TcpFaultProxy } from "../harness/tcp-fault-proxy.js";

const rule: Rule = {
  id: "r",
  key: ["user"],
  algorithm: "fixed-window",
  limit: 1_000_000,
  window: "1h",
  onStoreFailure: "deny",
};

interface Proxied extends AsyncDisposable {
  readonly url: string;
  readonly proxies: readonly TcpFaultProxy[];
}

async function single(): Promise<Proxied> {
  const redis = await startRedis();
  const proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
  return {
    url: proxy.url,
    proxies: [proxy],
    async [Symbol.asyncDispose]() {
      await proxy.stop();
      await redis.stop();
    },
  };
}

/** A leader that its Sentinel knows by the proxy's address. */
async function bySentinel(): Promise<Proxied> {
  const proxyPort = await freePort();
  const args = ["--replica-announce-ip", "127.0.0.1", "--replica-announce-port", String(proxyPort)];
  const set = await startSentinels({ replicas: 0, sentinels: 1, node: { args } });
  const proxy = await startTcpFaultProxy({ upstreamPort: set.leader.port, port: proxyPort });
  const sentinel = (...words: string[]) =>
    execFileSync("redis-cli", ["-p", String(set.sentinelPorts[0]), "SENTINEL", ...words], { encoding: "utf8" });
  sentinel("REMOVE", "main");
  sentinel("MONITOR", "main", "127.0.0.1", String(proxyPort), "1");
  sentinel("SET", "main", "down-after-milliseconds", "60000");
  return {
    url: set.url,
    proxies: [proxy],
    async [Symbol.asyncDispose]() {
      await proxy.stop();
      await set.stop();
    },
  };
}

async function clustered(): Promise<Proxied> {
  const ports = await Promise.all([0, 1, 2].map(() => freePort()));
  const proxies = await Promise.all(ports.map((upstreamPort) => startTcpFaultProxy({ upstreamPort })));
  const cluster: RedisCluster = await startCluster({
    leaders: 3,
    node: (n) => ({
      port: ports[n]!,
      args: [
        ...["--cluster-announce-ip", "127.0.0.1"],
        ...["--cluster-announce-port", String(proxies[n]!.port)],
        ...["--cluster-announce-bus-port", String(ports[n]! + 10_000)],
      ],
    }),
    meetAt: (_, n) => ({ port: proxies[n]!.port, busPort: ports[n]! + 10_000 }),
  });
  return {
    url: `redis+cluster://${proxies.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    proxies,
    async [Symbol.asyncDispose]() {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await cluster.stop();
    },
  };
}

const kinds = [
  ["one Redis", single],
  ["a leader found by Sentinel", bySentinel],
  ["a cluster", clustered],
] as const;

describe.skipIf(whyMissing("redis"))("half-open connections", () => {
  // Side by side, each on servers of its own: what takes time is to miss heartbeats.
  test.concurrent.each(kinds)(
    "of a limiter to %s are given up, and the store decides again",
    async (kind, start) => {
      await using redis = await start();
      const limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 200 }), rules: [rule] });
      const users = Array.from({ length: 12 }, (_, i) => ({ user: `u${i}` }));
      const decided = async (): Promise<boolean> => {
        const decisions = await Promise.all(users.map((user) => limiter.check(user)));
        return decisions.every(({ degraded }) => degraded === undefined);
      };
      await until("every node decides", decided);
      const before = redis.proxies.reduce((sum, { accepted }) => sum + accepted, 0);
      const silent = redis.proxies.reduce((sum, proxy) => sum + proxy.halfOpen(), 0);
      expect(silent).toBeGreaterThan(0);
      expect(await decided()).toBe(false);
      const sinceMs = performance.now();
      await until("every node decides again", decided);
      console.log(`half-open, ${kind}: exact after ${((performance.now() - sinceMs) / 1_000).toFixed(1)} s`);
      expect(redis.proxies.reduce((sum, { accepted }) => sum + accepted, 0)).toBeGreaterThan(before);
      await limiter.close();
    },
    60_000,
  );

  test.concurrent.each(kinds)(
    "of an announcement channel on %s are given up, and changes are heard again",
    async (_, start) => {
      await using redis = await start();
      const heard: number[] = [];
      let readied = 0;
      const onReady = (): void => {
        readied++;
      };
      const cache = new RuleCache({
        url: redis.url,
        ttlMs: 60_000,
        onAnnounced: (version) => heard.push(version),
        onReady,
      });
      const announced = async (version: number): Promise<boolean> => {
        await cache.announce(version).catch(() => undefined);
        return heard.includes(version);
      };
      await until("announcements are heard", () => announced(1));
      const before = readied;
      for (const proxy of redis.proxies) proxy.halfOpen();
      expect(await announced(2)).toBe(false);
      await until("announcements are heard again", () => announced(3));
      // Whoever listens is told that something may have been missed.
      expect(readied).toBeGreaterThan(before);
      cache.close();
    },
    60_000,
  );

  test("a connection that only hangs for less than a heartbeat is kept", async () => {
    await using redis = await startRedis();
    await using proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
    const limiter = createLimiter({ store: redisStore(proxy.url, { deadlineMs: 2_000 }), rules: [rule] });
    await until("it answers", () => limiter.ready());
    const before = proxy.accepted;
    for (let i = 0; i < 3; i++) {
      proxy.latencyMs = 800;
      expect((await limiter.check({ user: "u" })).degraded).toBeUndefined();
      proxy.latencyMs = 0;
      expect((await limiter.check({ user: "u" })).degraded).toBeUndefined();
    }
    expect(proxy.accepted).toBe(before);
    await limiter.close();
  });

  test("an event loop that was blocked does not take its own lateness for silence", async () => {
    await using redis = await startRedis();
    const limiter = createLimiter({ store: redisStore(redis.url), rules: [rule] });
    await until("it answers", () => limiter.ready());
    const clientId = async (): Promise<string> => (await redis.cli("CLIENT", "LIST", "TYPE", "normal")).split("\n")[0]!;
    const idOf = (line: string): string => /^id=(\d+)/.exec(line)![1]!;
    const before = idOf(await clientId());
    for (let i = 0; i < 3; i++) {
      blockEventLoop(2_500);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect((await limiter.check({ user: "u" })).degraded).toBeUndefined();
    expect(idOf(await clientId())).toBe(before);
    await limiter.close();
  });
});
