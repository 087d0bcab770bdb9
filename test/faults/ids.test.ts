/**
 * Request ids and undos while a Redis Cluster loses nodes, answers and slots: what was refused stays uncharged, what was admitted is
 * charged once, and no id passes uncounted.
 */

import { createHash } from "node:crypto";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { requestPlaceKey } from "../../packages/sluice/src/keys.js";
import { clusterSlot } from "../../packages/sluice/src/store/redis/cluster/cluster-slot.js";
import { type RedisConnection, redisConnection } from "../../packages/sluice/src/store/redis/connection.js";
import { scriptSources } from "../../packages/sluice/src/store/redis/lua/scripts.generated.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisCluster, startCluster, until } from "../harness/redis-cluster.js";
import type { RedisServer } from "../harness/redis-server.js";
import { moveSlot, nodesSeenBy, whole } from "./cluster-steps.js";

const fixed = { algorithm: "fixed-window", window: "365d", onStoreFailure: "deny" } as const;
const patient = { deadlineMs: 5_000, rememberRefusals: false };

describe.skipIf(whyMissing("redis"))("request ids on a Redis Cluster in trouble", () => {
  let cluster: RedisCluster;
  /** A user on the first leader, a path on the second. */
  let user: string;
  let path: string;
  let limiters: Limiter[] = [];

  beforeAll(async () => {
    cluster = await startCluster({ leaders: 3 });
    user = await nameOn("user", cluster.leaders[0]!);
    path = await nameOn("path", cluster.leaders[1]!);
  });
  beforeEach(async () => {
    await Promise.all(limiters.map((limiter) => limiter.close()));
    limiters = [];
    await cluster.onLeaders("FLUSHALL");
  });
  afterAll(async () => {
    await Promise.all(limiters.map((limiter) => limiter.close()));
    await cluster?.stop();
  });

  async function nameOn(attribute: string, leader: RedisServer): Promise<string> {
    const nodes = await nodesSeenBy(leader);
    const { slots } = nodes.find(({ port }) => port === leader.port)!;
    for (let i = 0; ; i++) {
      const slot = clusterSlot(`{${attribute}=n${i}}`);
      if (slots.some(([first, last]) => first <= slot && slot <= last)) return `n${i}`;
    }
  }

  function limiterOf(rules: readonly Rule[], options: Parameters<typeof redisStore>[1] = patient): Limiter {
    const limiter = createLimiter({ store: redisStore(cluster.url, options), rules });
    limiters.push(limiter);
    return limiter;
  }

  const remaining = async (limiter: Limiter, attributes: Record<string, string>): Promise<number[]> =>
    (await limiter.peek(attributes, { cost: 0 })).checks.map((check) => check.remaining);

  /** Moves the user's slot to another leader and back, key by key; `between` runs while it is half there. */
  async function moveUserMeanwhile(between: () => Promise<void>): Promise<void> {
    const slot = clusterSlot(`{user=${user}}`);
    const [home, away] = [cluster.leaders[0]!, cluster.leaders[1]!];
    let rounds = 0;
    // Only some rounds, so that it ends: each leaves new keys behind.
    const some = async (): Promise<void> => void (rounds++ < 6 && (await between()));
    try {
      await moveSlot(cluster, { slot, from: home, to: away, between: some });
    } finally {
      await moveSlot(cluster, { slot, from: away, to: home });
    }
    expect(rounds).toBeGreaterThan(2);
    await between();
  }

  const twoSlots: Rule[] = [
    { id: "per-user", key: ["user"], ...fixed, limit: 10 },
    { id: "per-path", key: ["path"], ...fixed, limit: 1_000 },
  ];

  test.each(["killed", "frozen"])(
    "ids that were denied while a node was %s are counted when they come again",
    async (fault) => {
      const limiter = limiterOf(twoSlots, { deadlineMs: 200, breakerIntervalMs: 50, rememberRefusals: false });
      const second = cluster.leaders[1]!;
      await until("the store answers", () => limiter.ready());
      if (fault === "killed") await second.kill();
      else second.pause();
      const ids = Array.from({ length: 30 }, (_, i) => `${fault}-${i}`);
      for (const id of ids) {
        expect(await limiter.check({ user, path }, { id })).toMatchObject({ allowed: false, degraded: "deny" });
      }
      if (fault === "killed") await second.restart();
      else second.resume();
      await whole(cluster);
      const again = limiterOf(twoSlots);
      const decides = async (): Promise<boolean> => (await again.peek({ user, path })).degraded === undefined;
      await until("the store decides", decides);
      let admitted = 0;
      for (const id of ids) {
        const decision = await again.check({ user, path }, { id });
        expect(decision.degraded).toBeUndefined();
        if (decision.allowed) admitted++;
      }
      expect(admitted).toBe(10);
      expect((await remaining(again, { user, path }))[0]).toBe(0);
    },
  );

  test.each(["killed", "frozen"])(
    "no charge stands that its id cannot find: the node of the ids was %s",
    async (fault) => {
      const rules: Rule[] = [{ id: "per-user", key: ["user"], ...fixed, limit: 100 }];
      const [limiter, other] = [0, 1].map(() =>
        limiterOf(rules, { deadlineMs: 200, breakerIntervalMs: 50, rememberRefusals: false }),
      ) as [Limiter, Limiter];
      const [calm, otherCalm] = [limiterOf(rules), limiterOf(rules)];
      for (const one of [limiter, other, calm, otherCalm]) await until("the store answers", () => one.ready());
      const third = cluster.leaders[2]!;
      const { slots } = (await nodesSeenBy(third)).find(({ port }) => port === third.port)!;
      const isThere = (id: string): boolean => {
        const slot = clusterSlot(requestPlaceKey(id));
        return slots.some(([first, last]) => first <= slot && slot <= last);
      };
      const named = Array.from({ length: 400 }, (_, i) => `${fault}-${i}`);
      const ids = named.filter(isThere).slice(0, 12);
      const elsewhere = named.filter((id) => !isThere(id)).slice(0, 3);
      if (fault === "killed") await third.kill();
      else third.pause();
      for (const id of ids) {
        expect(await limiter.check({ user }, { id })).toMatchObject({ allowed: false, degraded: "deny" });
        await expect(other.refund(id)).rejects.toMatchObject({ code: "store-unavailable" });
      }
      for (const id of elsewhere) {
        expect((await calm.check({ user }, { id })).degraded).toBeUndefined();
        expect(await otherCalm.refund(id)).toBe(true);
      }
      if (fault === "killed") await third.restart();
      else third.resume();
      await whole(cluster);
      await until("nothing waits to be undone", async () => limiter.storeStats()!.undos.pending === 0);
      expect(limiter.storeStats()!.undos.lost).toBe(0);
      expect(await remaining(limiter, { user })).toEqual([100]);
      for (const id of ids) {
        await until("it is decided", async () => (await limiter.check({ user }, { id })).degraded === undefined);
        await until("its refund is known", () => other.refund(id).catch(() => false));
      }
      expect(await remaining(limiter, { user })).toEqual([100]);
    },
  );

  test("one id sent at once over two instances is charged once in every slot, and all answers agree", async () => {
    const rules = [
      { ...twoSlots[0]!, limit: 20 },
      { ...twoSlots[1]!, limit: 30 },
    ] as Rule[];
    const instances = [limiterOf(rules), limiterOf(rules)];
    for (const limiter of instances) await until("the store answers", () => limiter.ready());
    const answers = await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        const sent = Array.from({ length: 6 }, (_, i) =>
          instances[i % 2]!.check({ user, path }, { id: `hedged-${n}` }),
        );
        return (await Promise.all(sent)).map(({ allowed }) => allowed);
      }),
    );
    for (const agreeing of answers) expect(new Set(agreeing).size).toBe(1);
    const admitted = answers.filter(([allowed]) => allowed).length;
    expect(admitted).toBeLessThanOrEqual(20);
    expect(await remaining(instances[0]!, { user, path })).toEqual([20 - admitted, 30 - admitted]);
    // Together they hold no more than the limit, and nothing that was refused keeps a unit from the next.
    let more = 0;
    for (let i = 0; i < 30; i++) if ((await instances[1]!.check({ user, path }, { id: `late-${i}` })).allowed) more++;
    expect(admitted + more).toBe(20);
  });

  test("an id that another instance repeats while its slot moves gets the same decision; its refund gives back once", async () => {
    const rules: Rule[] = [
      { id: "moved", key: ["user"], ...fixed, limit: 1_000 },
      { id: "beside", key: ["user"], ...fixed, algorithm: "rolling-window", limit: 1_000 },
    ];
    const [first, second] = [limiterOf(rules), limiterOf(rules)] as const;
    let n = 0;
    let standing = 0;
    const between = async (): Promise<void> => {
      for (let i = 0; i < 5; i++) {
        const id = `moving-${n++}`;
        const decision = await first.check({ user }, { id });
        expect(decision).toMatchObject({ allowed: true });
        expect(decision.degraded).toBeUndefined();
        const repeated = await second.check({ user }, { id });
        expect(repeated.checks).toEqual(decision.checks);
        await expect(second.check({ user, path: "other" }, { id })).rejects.toMatchObject({ code: "invalid-request" });
        if (i % 2 === 0) {
          expect([await second.refund(id), await first.refund(id)]).toEqual([true, false]);
        } else standing++;
      }
    };
    await between();
    await moveUserMeanwhile(between);
    expect(await remaining(first, { user })).toEqual([1_000 - standing, 1_000 - standing]);
    expect(first.storeStats()!.undos).toEqual({ pending: 0, lost: 0 });
  });

  test("requests that are refused while a slot moves leave nothing charged in it", async () => {
    const rules: Rule[] = [
      { id: "moved", key: ["user"], ...fixed, limit: 1_000 },
      { id: "beside", key: ["user"], ...fixed, algorithm: "token-bucket", limit: 1_000 },
      { id: "shut", key: ["path"], ...fixed, limit: 1 },
    ];
    const limiter = limiterOf(rules);
    expect((await limiter.check({ user, path })).allowed).toBe(true);
    let refused = 0;
    const between = async (): Promise<void> => {
      const sent = Array.from({ length: 20 }, (_, i) =>
        limiter.check({ user, path }, i % 2 === 0 ? {} : { id: `shut-${refused}-${i}` }),
      );
      for (const decision of await Promise.all(sent)) {
        expect(decision).toMatchObject({ allowed: false, violated: ["shut"] });
        refused++;
      }
    };
    await moveUserMeanwhile(between);
    await until("nothing waits to be undone", async () => limiter.storeStats()!.undos.pending === 0);
    expect(refused).toBeGreaterThan(60);
    expect(limiter.storeStats()!.undos.lost).toBe(0);
    expect(await remaining(limiter, { user, path })).toEqual([999, 999, 0]);
  });

  test("keys are blocked, and stay so, while their slot moves; what is refused for it charges nothing", async () => {
    const rules: Rule[] = [
      { id: "guard", key: ["user"], ...fixed, limit: 1, blockFor: "1h" },
      { id: "beside", key: ["user"], ...fixed, algorithm: "rolling-window", limit: 1_000 },
    ];
    const limiter = limiterOf(rules);
    expect((await limiter.check({ user })).allowed).toBe(true);
    const reasons = new Set<string | undefined>();
    let refused = 0;
    const between = async (): Promise<void> => {
      const decision = await limiter.check({ user }, { id: `blocked-${refused++}` });
      expect(decision).toMatchObject({ allowed: false, rule: "guard", violated: ["guard"] });
      expect(decision.retryAfterMs).toBeGreaterThan(3_000_000);
      reasons.add(decision.reason);
    };
    await moveUserMeanwhile(between);
    // Begun once, in whichever state of the move; then blocked.
    expect([...reasons]).toEqual(["limit", "blocked"]);
    expect(refused).toBeGreaterThan(2);
    // The counter has room again, and the block still stands.
    expect(await limiter.giveBack({ user })).toBe(true);
    expect(await limiter.check({ user })).toMatchObject({ allowed: false, reason: "blocked" });
    expect(await remaining(limiter, { user })).toEqual([1, 1_000]);
    await limiter.reset("guard", { user });
    expect((await limiter.check({ user })).allowed).toBe(true);
  });

  const refundSha = createHash("sha1").update(scriptSources.refund).digest("hex");

  /** A store whose first undos fail: before they are sent, or after they were done and only the answer was lost. */
  function storeThatLoses(count: number, what: "calls" | "answers"): RedisStore {
    const connection: RedisConnection = redisConnection(cluster.url);
    const send = connection.send.bind(connection);
    let left = count;
    connection.send = async (command, args) => {
      const isUndo = args[0] === refundSha || args[0] === scriptSources.refund;
      if (!isUndo || left <= 0) return await send(command, args);
      left--;
      if (what === "answers") await send(command, args);
      throw new Error("Connection is closed.");
    };
    return new RedisStore(connection, { ...patient, breakerFailures: 1_000 });
  }

  test.each(["calls", "answers"] as const)(
    "an undo whose %s are lost is tried again, and gives back once",
    async (what) => {
      const rules = [
        { ...twoSlots[0]!, limit: 100 },
        { ...twoSlots[1]!, limit: 1 },
      ] as Rule[];
      const store = storeThatLoses(25, what);
      const limiter = createLimiter({ store, rules });
      limiters.push(limiter);
      await until("the store answers", () => limiter.ready());
      expect((await limiter.check({ user, path })).allowed).toBe(true);
      const sent = Array.from({ length: 20 }, (_, i) =>
        limiter.check({ user, path }, i % 2 === 0 ? {} : { id: `l-${i}` }),
      );
      for (const { allowed } of await Promise.all(sent)) expect(allowed).toBe(false);
      await until("nothing waits to be undone", async () => limiter.storeStats()!.undos.pending === 0);
      expect(limiter.storeStats()!.undos.lost).toBe(0);
      expect(await remaining(limiter, { user, path })).toEqual([99, 0]);
    },
  );

  /** The records of an id, of every slot. */
  async function recordsOf(id: string): Promise<{ key: string; leader: RedisServer; text: string }[]> {
    const found = [];
    for (const leader of cluster.leaders) {
      for (const key of (await leader.cli("KEYS", `sluice:1:{*}!3=${id}`)).trim().split("\n")) {
        if (key !== "" && !key.startsWith("sluice:1:{!")) {
          found.push({ key, leader, text: (await leader.cli("GET", key)).trimEnd() });
        }
      }
    }
    return found;
  }

  test("a repetition at the very end of its minute is charged in every slot or in none", async () => {
    const limiter = limiterOf(twoSlots);
    await until("the store answers", () => limiter.ready());
    await limiter.check({ user, path }, { id: "late" });
    const records = await recordsOf("late");
    expect(records).toHaveLength(2);
    // One slot's record ended a moment before the other's.
    const old = records.find(({ key }) => key.includes("user="))!;
    const ended = records.find(({ key }) => key.includes("path="))!;
    await ended.leader.cli("DEL", ended.key);
    const [header, numbers, receipt] = old.text.split("\n");
    const atMs = numbers!.split(" ")[0]!;
    const aged = [header, numbers!.replace(atMs, String(Number(atMs) - 59_990)), receipt].join("\n");
    await old.leader.cli("SET", old.key, aged, "KEEPTTL");
    expect((await limiter.check({ user, path }, { id: "late" })).allowed).toBe(true);
    expect(await remaining(limiter, { user, path })).toEqual([8, 998]);
  });

  test("a request that was decided by two attempts is refunded, released and undone part by part", async () => {
    const rules: Rule[] = [
      { id: "places-user", key: ["user"], algorithm: "concurrency", limit: 5, ttl: "1h", onStoreFailure: "deny" },
      { id: "places-path", key: ["path"], algorithm: "concurrency", limit: 2, ttl: "1h", onStoreFailure: "deny" },
    ];
    const limiter = limiterOf(rules);
    await until("the store answers", () => limiter.ready());
    const half = async (id: string): Promise<Awaited<ReturnType<Limiter["check"]>>> => {
      const first = await limiter.check({ user, path }, { id });
      // As if the second part had never been reached: neither its place nor its record.
      const record = (await recordsOf(id)).find(({ key }) => key.includes("path="))!;
      await record.leader.cli("DEL", record.key);
      await limiter.reset("places-path", { path });
      expect(first.allowed).toBe(true);
      return await limiter.check({ user, path }, { id });
    };
    const joined = await half("halved");
    expect(await remaining(limiter, { user, path })).toEqual([4, 1]);
    expect(await joined.lease!.renew()).toBe(true);
    expect(await joined.lease!.release()).toBe(true);
    expect(await remaining(limiter, { user, path })).toEqual([5, 2]);
    const again = await half("halved again");
    expect(await limiter.refund(again)).toBe(true);
    expect(await remaining(limiter, { user, path })).toEqual([5, 2]);
  });
});
