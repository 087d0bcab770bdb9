/** `GET /admin/v1/store` against real servers: one Redis, a leader with a replica, a cluster, dead nodes, a narrow ACL. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { StoreView } from "../../packages/server/src/monitoring/views/store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { eventually } from "../configuration/instance.js";
import { freePort } from "../harness/free-port.js";
import { makeTempFolder, removeTempFolder } from "../harness/leash.js";
import { startCluster } from "../harness/redis-cluster.js";
import { redisBinary, startRedis } from "../harness/redis-server.js";
import { startServerProcess } from "../harness/server-process.js";
import { postJson, type RunningService, startTestService } from "../service/running-service.js";

const ADMIN_TOKEN = "an-admin-token-for-tests";
const perUser = { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 100, window: "1d" } as const;
const burst = { id: "burst", key: ["user"], algorithm: "rolling-window", limit: 100, window: "1h" } as const;
const rules = [perUser, burst];

const serviceOn = (store: string): Promise<RunningService> =>
  startTestService({ rules, settings: { store, "admin-token": ADMIN_TOKEN, "store-deadline": "2s" } });

async function readStore(service: RunningService): Promise<StoreView> {
  const reply = await fetch(`${service.http}/admin/v1/store`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  expect(reply.status).toBe(200);
  return (await reply.json()) as StoreView;
}

async function countUsers(service: RunningService, users: number): Promise<void> {
  for (let from = 0; from < users; from += 500) {
    const requests = Array.from({ length: Math.min(500, users - from) }, (_, i) => ({
      attributes: { user: `user-${from + i}` },
    }));
    expect((await postJson(`${service.http}/v1/check/batch`, { requests })).status).toBe(200);
  }
}

test("with the memory store there are no nodes, and the counters are counted", async () => {
  await using service = await serviceOn("memory");
  await countUsers(service, 10);
  expect(await readStore(service)).toMatchObject({ kind: "memory", state: "up", nodes: [], keysInMemory: 20 });
});

test("nobody without a token sees the store", async () => {
  await using service = await serviceOn("memory");
  expect((await fetch(`${service.http}/admin/v1/store`)).status).toBe(401);
});

test.skipIf(whyMissing("redis"))(
  "a leader and its replica are shown with memory, policy, latency and lag",
  async () => {
    await using leader = await startRedis({
      args: ["--maxmemory", "100mb", "--slowlog-log-slower-than", "0", "--repl-diskless-sync-delay", "0"],
    });
    await using replica = await startRedis({ args: ["--replicaof", "127.0.0.1", String(leader.port)] });
    await eventually("the replica follows", async () =>
      (await leader.cli("INFO", "replication")).includes("state=online"),
    );
    await using service = await serviceOn(leader.url);
    await countUsers(service, 10);
    const { nodes, calls } = await readStore(service);
    expect(nodes).toHaveLength(2);
    expect(nodes[0]).toMatchObject({
      address: `127.0.0.1:${leader.port}`,
      role: "leader",
      state: "up",
      maxBytes: 100 * 2 ** 20,
      maxMemoryPolicy: "noeviction",
      evictedKeys: 0,
      version: expect.stringMatching(/^\d+\.\d+/),
      usedBytes: expect.any(Number),
      opsPerSecond: expect.any(Number),
      connectedClients: expect.any(Number),
      pingMs: expect.any(Number),
      latencyEvents: [],
    });
    expect(nodes[0]!.slow!.length).toBeGreaterThan(0);
    expect(nodes[0]!.slow!.length).toBeLessThanOrEqual(10);
    expect(JSON.stringify(nodes[0]!.slow)).not.toContain("user-");
    expect(nodes[1]).toMatchObject({
      address: `127.0.0.1:${replica.port}`,
      role: "replica",
      leaderAddress: `127.0.0.1:${leader.port}`,
      state: "up",
      replicationLagBytes: expect.any(Number),
    });
    expect(calls).toMatchObject({ errors: 0, breaker: "closed" });
    expect(calls.total).toBeGreaterThan(0);
  },
);

test.skipIf(whyMissing("redis"))(
  "memory by rule is sampled, and extrapolated within a fifth of the truth",
  async () => {
    await using redis = await startRedis();
    await using service = await serviceOn(redis.url);
    await countUsers(service, 6_000);
    const { memory } = await readStore(service);
    expect(memory.sample!.ofKeys).toBeGreaterThanOrEqual(12_000);
    expect(memory.sample!.keys).toBeLessThan(3_000);
    const keysOf = (rule: string) => memory.byRule.find((each) => each.rule === rule)!;
    for (const { id } of rules) expect(Math.abs(keysOf(id).keys / 6_000 - 1), id).toBeLessThan(0.2);
    // A window that holds one entry of a hundred is far below what it takes when full; a counter takes the same always.
    expect(keysOf("burst").predictedFullBytes).toBeGreaterThan(2 * keysOf("burst").measuredBytes!);
    expect(Math.abs(keysOf("per-user").predictedFullBytes / keysOf("per-user").measuredBytes! - 1)).toBeLessThan(0.05);
    expect(memory.measuredBytes).toBeGreaterThan(12_000 * 80);
  },
);

test.skipIf(whyMissing("redis"))(
  "a cluster is shown as a map of slots, and a dead node as down while the others are up",
  async () => {
    await using cluster = await startCluster({ leaders: 3, replicasEach: 1 });
    await using service = await serviceOn(cluster.url);
    await countUsers(service, 300);
    const { nodes, memory } = await readStore(service);
    const leaders = nodes.filter(({ role }) => role === "leader");
    expect(leaders.map(({ slots }) => slots![0]).sort()).toEqual(["0-5460", "10922-16383", "5461-10921"].sort());
    expect(
      nodes.filter(({ role }) => role === "replica").every(({ leaderAddress }) => leaderAddress !== undefined),
    ).toBe(true);
    expect(nodes.every(({ state }) => state === "up")).toBe(true);
    expect(memory.byRule.find(({ rule }) => rule === "burst")!.keys).toBe(300);

    const dead = cluster.replicas[0]!;
    await dead.kill();
    await eventually("the dead node is shown as down", async () => {
      const view = await readStore(service);
      const down = view.nodes.filter(({ state }) => state === "down");
      return view.nodes.length === 6 && down.length === 1 && down[0]!.address === `127.0.0.1:${dead.port}`;
    });
  },
);

test.skipIf(whyMissing("redis"))("by Sentinel the present leader and its replica are shown", async () => {
  await using leader = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
  await using replica = await startRedis({ args: ["--replicaof", "127.0.0.1", String(leader.port)] });
  await eventually("the replica follows", async () =>
    (await leader.cli("INFO", "replication")).includes("state=online"),
  );
  const folder = makeTempFolder("sentinel");
  const port = await freePort();
  const file = join(folder, "sentinel.conf");
  const monitor = `sentinel monitor main 127.0.0.1 ${leader.port} 1`;
  writeFileSync(file, [`port ${port}`, "bind 127.0.0.1", `dir ${folder}`, monitor].join("\n"));
  const sentinel = await startServerProcess({
    command: redisBinary(),
    args: [file, "--sentinel"],
    env: {},
    readyLine: /monitor master main/,
  });
  try {
    await using service = await serviceOn(`redis+sentinel://127.0.0.1:${port}/main`);
    const { nodes } = await readStore(service);
    expect(nodes.map(({ address, role, state }) => ({ address, role, state }))).toEqual([
      { address: `127.0.0.1:${leader.port}`, role: "leader", state: "up" },
      { address: `127.0.0.1:${replica.port}`, role: "replica", state: "up" },
    ]);
  } finally {
    await sentinel.stop();
    removeTempFolder(folder);
  }
});

test.skipIf(whyMissing("redis"))(
  "a frozen Redis is shown as down while it is frozen, and as up again after",
  async () => {
    await using redis = await startRedis();
    await using service = await serviceOn(redis.url);
    expect((await readStore(service)).nodes[0]!.state).toBe("up");
    redis.pause();
    await eventually("it is shown as down", async () => (await readStore(service)).nodes[0]!.state === "down");
    redis.resume();
    await eventually("it is up again", async () => (await readStore(service)).nodes[0]!.state === "up");
  },
);

test.skipIf(whyMissing("redis"))("a login that may not ask INFO sees what it may", async () => {
  await using redis = await startRedis();
  await redis.cli(
    "ACL",
    "SETUSER",
    "narrow",
    "on",
    ">secret",
    "~sluice:*",
    "&*",
    "+@all",
    "-info",
    "-slowlog",
    "-memory",
  );
  await using service = await serviceOn(`redis://narrow:secret@127.0.0.1:${redis.port}`);
  await countUsers(service, 10);
  const { nodes, memory } = await readStore(service);
  expect(nodes).toEqual([
    {
      address: `127.0.0.1:${redis.port}`,
      role: "leader",
      state: "up",
      pingMs: expect.any(Number),
      latencyEvents: [],
    },
  ]);
  expect(memory.measuredBytes).toBeUndefined();
  expect(memory.byRule.find(({ rule }) => rule === "burst")).toMatchObject({ keys: 10 });
});

test.skipIf(whyMissing("redis"))("many viewers at once cost Redis one question", async () => {
  await using redis = await startRedis();
  await using service = await serviceOn(redis.url);
  await readStore(service);
  const infos = async (): Promise<number> =>
    Number(/cmdstat_info:calls=(\d+)/.exec(await redis.cli("INFO", "commandstats"))?.[1] ?? 0);
  const before = await infos();
  await Promise.all(Array.from({ length: 50 }, () => readStore(service)));
  // One that counts, one of the viewers; the alerts look too, and on a slow machine an answer may have aged meanwhile.
  expect((await infos()) - before).toBeLessThanOrEqual(6);
});
