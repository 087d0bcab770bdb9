/**
 * A cluster's batches by node: what shares a call, what is atomic, and that nothing is lost or counted twice where a node does not take it:
 * a slot on the move, a client whose map is old, a server that does not know scripts over several slots.
 */
import { Cluster } from "ioredis";
import { createLimiter, type Decision, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { leaderOf, moveSlot, slotOfUser, usersByLeader } from "../faults/cluster-steps.js";
import { type RedisCluster, startCluster, until } from "../harness/redis-cluster.js";
import type { RedisServer } from "../harness/redis-server.js";

const OPTIONS = { deadlineMs: 60_000, rememberRefusals: false };
const perUser: Rule = {
  id: "per-user",
  key: ["user"],
  algorithm: "rolling-window",
  limit: 5,
  window: "1h",
  onStoreFailure: "deny",
};
const perFriend: Rule = {
  ...perUser,
  id: "per-friend",
  key: ["friend"],
  algorithm: "token-bucket",
  limit: 2,
} as Rule;
/** Stored forms that have a script of each kind: straight code, entries with ids, windows, decide. */
const forms: Rule[] = [
  perUser,
  { ...perUser, storage: "sorted-set" } as Rule,
  { ...perUser, algorithm: "gcra" } as Rule,
  { ...perUser, algorithm: "fixed-window" } as Rule,
  { ...perUser, algorithm: "sliding-counter" } as Rule,
  { ...perUser, blockFor: "1h" } as Rule,
  { ...perUser, prefetch: "20ms" } as Rule,
  { ...perUser, maxWait: "1ms" } as Rule,
];

const untold = { id: undefined, key: undefined, limit: undefined, window: undefined, onStoreFailure: undefined };

describe.skipIf(whyMissing("redis"))("a cluster's batches by node", () => {
  let cluster: RedisCluster;
  let users: Map<RedisServer, string[]>;
  let friends: Map<RedisServer, string[]>;
  const open: Limiter[] = [];
  /** Why something was decided without the store: a failed test shows it. */
  const outages: string[] = [];

  beforeAll(async () => {
    cluster = await startCluster();
    users = await usersByLeader(cluster, 20);
    friends = await usersByLeader(cluster, 1, "friend");
  });
  beforeEach(async () => {
    await cluster.onLeaders("FLUSHALL");
    outages.length = 0;
  });
  afterAll(async () => {
    for (const limiter of open) await limiter.close();
    await cluster?.stop();
  });

  async function limiterOf(rules: readonly Rule[], store: string | Cluster = cluster.url): Promise<Limiter> {
    const limiter = createLimiter({ store: redisStore(store, OPTIONS), rules });
    open.push(limiter);
    limiter.on("degraded", (cause) => {
      outages.push(String(cause));
    });
    await until("the store answers", () => limiter.ready());
    return limiter;
  }

  /** Some turns, in each of which every user asks twice. */
  async function ask(limiter: Limiter, who: readonly string[], turns: number): Promise<Map<string, number>> {
    const admitted = new Map<string, number>();
    for (let turn = 0; turn < turns; turn++) {
      const asked = [...who, ...who];
      const decisions = await Promise.all(asked.map((user) => limiter.check({ user })));
      decisions.forEach(({ allowed, degraded }, i) => {
        expect({ degraded, outages }).toEqual({ degraded: undefined, outages: [] });
        if (allowed) admitted.set(asked[i]!, (admitted.get(asked[i]!) ?? 0) + 1);
      });
    }
    return admitted;
  }

  const everybody = (): string[] => [...users.values()].flat();
  const exactly = (who: readonly string[], count: number): Map<string, number> =>
    new Map(who.map((user) => [user, count]));

  test.each(forms.map((rule) => [JSON.stringify({ ...rule, ...untold }), rule] as const))(
    "each user passes as often as the limit says, over all slots: %s",
    async (_, rule) => {
      const limiter = await limiterOf([rule]);
      expect(await ask(limiter, everybody(), 4)).toEqual(exactly(everybody(), 5));
    },
  );

  test("a slot that nobody serves is one outage, told once and by its cause, while the other slots are decided", async () => {
    const limiter = createLimiter({
      store: redisStore(cluster.url, { ...OPTIONS, deadlineMs: 500 }),
      rules: [perUser],
    });
    open.push(limiter);
    await until("the store answers", () => limiter.ready());
    const events: string[] = [];
    limiter.on("degraded", (cause) => events.push(String(cause)));
    limiter.on("recovered", () => events.push("recovered"));
    const [leader] = cluster.leaders as [RedisServer];
    const [unserved, ...others] = users.get(leader)! as [string, ...string[]];
    const slot = String(slotOfUser(unserved));
    await cluster.onLeaders("CLUSTER", "DELSLOTS", slot);
    try {
      const isDegraded = async (user: string) => (await limiter.check({ user }, { cost: 0 })).degraded !== undefined;
      await until("the slot is not served", () => isDegraded(unserved));
      const found = { unserved: 0, others: 0 };
      for (let i = 0; i < 30; i++) {
        if (await isDegraded(unserved)) found.unserved++;
        if (await isDegraded(others[i % others.length]!)) found.others++;
      }
      expect(found).toEqual({ unserved: 30, others: 0 });
      await expect.poll(() => events, { timeout: 5_000 }).toEqual([expect.stringMatching(/Hash slot not served/)]);
    } finally {
      await leader.cli("CLUSTER", "ADDSLOTS", slot);
      await until("every slot is served", async () =>
        (await Promise.all(cluster.leaders.map((one) => one.cli("CLUSTER", "INFO")))).every((info) =>
          info.includes("cluster_slots_ok:16384"),
        ),
      );
    }
  });

  test("rules whose slots are on one node are decided in one script: atomic, and a refusal charges nothing", async () => {
    const limiter = await limiterOf([perUser, perFriend]);
    for (const leader of cluster.leaders) {
      const [user, friend] = [users.get(leader)![0], friends.get(leader)![0]];
      const before = limiter.storeStats()!.calls;
      const decisions: Decision[] = [];
      for (let i = 0; i < 4; i++) decisions.push(await limiter.check({ user: user!, friend: friend! }));
      expect(limiter.storeStats()!.calls - before).toBe(4);
      expect(decisions.map(({ allowed, guarantee }) => [allowed, guarantee])).toEqual([
        [true, "atomic"],
        [true, "atomic"],
        [false, "atomic"],
        [false, "atomic"],
      ]);
      expect((await limiter.peek({ user: user! }, { cost: 0 })).checks[0]!.remaining).toBe(3);
    }
  });

  test("rules on two nodes are decided node by node, and a refusal charges nothing", async () => {
    const limiter = await limiterOf([
      perUser,
      perFriend,
      { ...perFriend, id: "per-both", key: ["both"], limit: 9 } as Rule,
    ]);
    const [here, there] = cluster.leaders as [RedisServer, RedisServer];
    const both = (await usersByLeader(cluster, 1, "both")).get(here)![0]!;
    const attributes = { user: users.get(here)![0]!, friend: friends.get(there)![0]!, both };
    const decisions: Decision[] = [];
    for (let i = 0; i < 4; i++) decisions.push(await limiter.check(attributes));
    expect(decisions.map(({ allowed, guarantee }) => [allowed, guarantee])).toEqual([
      [true, "compensated"],
      [true, "compensated"],
      [false, "compensated"],
      [false, "compensated"],
    ]);
    const { checks } = await limiter.peek(attributes, { cost: 0 });
    expect(checks.map(({ remaining }) => remaining)).toEqual([3, 0, 7]);
  });

  test("a slot on the move: whatever is there or here, every user of both nodes passes as often as the limit says", async () => {
    const [from, to] = cluster.leaders as [RedisServer, RedisServer];
    const theirs = users.get(from)!;
    const moving = theirs[0]!;
    const limiter = await limiterOf([perUser]);
    const total = new Map<string, number>();
    const step = async (): Promise<void> => {
      for (const [user, count] of await ask(limiter, everybody(), 1)) total.set(user, (total.get(user) ?? 0) + count);
    };
    await step();
    await moveSlot(cluster, { slot: slotOfUser(moving), from, to, between: step });
    for (let i = 0; i < 3; i++) await step();
    expect(total).toEqual(exactly(everybody(), 5));
    expect((await leaderOf(cluster, moving)).leader).toBe(to);
    await moveSlot(cluster, { slot: slotOfUser(moving), from: to, to: from });
  });

  test("a request over several slots of a node, one of them on the move, is decided by slot; a refusal charges nothing", async () => {
    const [from, to] = cluster.leaders as [RedisServer, RedisServer];
    const [user, friend] = [users.get(from)![0]!, friends.get(from)![0]!];
    const limiter = await limiterOf([perUser, perFriend]);
    const decisions: Decision[] = [];
    const between = async (): Promise<void> => void decisions.push(await limiter.check({ user, friend }));
    await between();
    await moveSlot(cluster, { slot: slotOfUser(user), from, to, between });
    await between();
    expect(decisions.every(({ degraded }) => degraded === undefined)).toBe(true);
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(2);
    expect(decisions.length).toBeGreaterThan(3);
    const { checks } = await limiter.peek({ user, friend }, { cost: 0 });
    expect(checks.map(({ remaining }) => remaining)).toEqual([3, 0]);
    await moveSlot(cluster, { slot: slotOfUser(user), from: to, to: from });
  });

  test("a server that does not know such scripts is asked once; everything is decided by slot from then on", async () => {
    const nodes = cluster.leaders.map(({ port }) => ({ host: "127.0.0.1", port }));
    const client = new Cluster(nodes);
    const send = client.call.bind(client);
    let refused = 0;
    // As Redis 6 answers: a shebang is a mistake there.
    client.call = ((command: string, ...args: [string, ...string[]]) => {
      if (command !== "EVAL" || !args[0].startsWith("#!")) return send(command, ...args);
      refused++;
      const said = "ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'";
      return Promise.reject(new Error(said));
    }) as typeof client.call;
    const limiter = await limiterOf([perUser, perFriend], client);
    await cluster.onLeaders("SCRIPT", "FLUSH");
    expect(await ask(limiter, everybody(), 4)).toEqual(exactly(everybody(), 5));
    const asked = refused;
    expect(asked).toBeGreaterThan(0);
    // Those that were under way when the first was refused.
    expect(asked).toBeLessThanOrEqual(cluster.leaders.length);
    const [first] = cluster.leaders as [RedisServer];
    const [user, friend] = [users.get(first)![0]!, friends.get(first)![0]!];
    await limiter.reset("per-user", { user });
    expect(await limiter.check({ user, friend })).toMatchObject({ allowed: true, guarantee: "compensated" });
    expect(refused).toBe(asked);
    client.disconnect();
  });
});
