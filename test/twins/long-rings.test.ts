/**
 * Long logs of the rolling window. Packed: rings past 512 bytes, where a decision reads and writes a few slots instead of the
 * whole. Sorted sets: costs of thousands, which one ZADD cannot take.
 * Random schedules through Lua on a real Redis, replayed through the model at the times that the scripts report; and what is
 * stored is looked at, so that a schedule that never meets a seam, a growth or a change of width does not pass for a proof.
 */
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { chargedBy } from "../../packages/sluice/src/algorithms/charged.js";
import type { Verdict } from "../../packages/sluice/src/algorithms/model.js";
import type { Rule } from "../../packages/sluice/src/index.js";
import { compileRuleBook, type RuleBook } from "../../packages/sluice/src/rules/rule-book.js";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import { redisConnection } from "../../packages/sluice/src/store/redis/connection.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import { encodeSingles } from "../../packages/sluice/src/store/redis/wire.js";
import type { StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { scriptTimeOf } from "./script-time.js";

const HEADER_BYTES = 14;
const SHORT_BYTES = 512;
const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);

interface Numbers {
  readonly limit: number;
  readonly windowMs: number;
}

type Storage = "packed" | "sorted-set";

interface Step {
  /** `edit` changes the rule's numbers, `refund` gives back a past charge, `wait` lets a share of the window pass. */
  readonly kind: "checks" | "peek" | "refund" | "edit" | "wait" | "back";
  /** 0 <= chance < 1: what it chooses depends on the kind. */
  readonly chance: number;
  /** Shares of the limit, one a check; checks of one step share one script call. */
  readonly shares: readonly number[];
  readonly numbers: Numbers;
}

const limit = fc.oneof(fc.integer({ min: 200, max: 600 }), fc.integer({ min: 600, max: 5_000 }));
/** Some are short, so that edits lead from a long ring to the plain script's ground and back. */
const editedLimit = fc.oneof(limit, fc.integer({ min: 20, max: 160 }));
/** Evenly: fc.double favours the smallest numbers. */
const upTo = (most: number): fc.Arbitrary<number> => fc.integer({ min: 0, max: 999 }).map((n) => (n / 1_000) * most);
const chance = upTo(1);
/** Mostly single units; some that fill a part of the ring, a few that fill all of it. */
const share = fc.oneof(
  { weight: 10, arbitrary: fc.constant(0) },
  { weight: 20, arbitrary: upTo(0.1) },
  { weight: 1, arbitrary: upTo(1) },
);

function steps(numbers: fc.Arbitrary<Numbers>, edits: number, length: number): fc.Arbitrary<Step[]> {
  const kind = fc.oneof(
    { weight: 200, arbitrary: fc.constant("checks" as const) },
    { weight: 10, arbitrary: fc.constant("peek" as const) },
    { weight: 20, arbitrary: fc.constant("refund" as const) },
    { weight: 100, arbitrary: fc.constant("wait" as const) },
    { weight: 5, arbitrary: fc.constant("back" as const) },
    { weight: edits, arbitrary: fc.constant("edit" as const) },
  );
  const shares = fc.array(share, { minLength: 1, maxLength: 6 });
  const step = fc.record({ kind, chance, shares, numbers });
  return fc.array(step, { minLength: length, maxLength: length * 2, size: "max" });
}

/** What the key holds, read as rolling-window-packed.lua tells it. */
interface Ring {
  readonly bytes: number;
  readonly width: number;
  readonly capacity: number;
  readonly head: number;
  readonly count: number;
  readonly expiresAtMs: number;
}

/** A server, its store, and a look past the store. */
class Bench {
  readonly store: RedisStore;
  readonly redis: RedisServer;
  readonly #client: Redis;
  /** The time that the last script used. */
  lastNowMs = 0;
  runs = 0;
  readonly seen = { decisions: 0, long: 0, seams: 0, widths: new Set<number>() };

  constructor(redis: RedisServer) {
    this.redis = redis;
    const connection = redisConnection(redis.url);
    const send = connection.send.bind(connection);
    connection.send = async (command, args) => {
      const reply = await send(command, args);
      this.lastNowMs = scriptTimeOf(args, reply) ?? this.lastNowMs;
      return reply;
    };
    this.store = new RedisStore(connection, { deadlineMs: 60_000, rememberRefusals: false });
    this.#client = new Redis(redis.url);
  }

  async ring(key: string): Promise<Ring | undefined> {
    const [header, bytes, expiresAtMs] = await Promise.all([
      this.#client.getrangeBuffer(`sluice:1:${key}`, 0, HEADER_BYTES - 1),
      this.#client.strlen(`sluice:1:${key}`),
      this.#client.call("PEXPIRETIME", `sluice:1:${key}`) as Promise<number>,
    ]);
    if (header.length < HEADER_BYTES || expiresAtMs === -2) return undefined;
    const shape = header.readUIntBE(0, 3);
    const [head, count] = [header.readUIntBE(3, 3), header.readUIntBE(6, 3)];
    return { bytes, width: (shape >> 22) + 2, capacity: shape & 0x3fffff, head, count, expiresAtMs };
  }

  /** How many members a sorted set has, ended ones included. */
  members(key: string): Promise<number> {
    return this.#client.zcard(`sluice:1:${key}`);
  }

  async close(): Promise<void> {
    this.#client.disconnect();
    await this.store.close();
    await this.redis.stop();
  }
}

/** How time passes: really, or by stepping the server's clock. */
interface Time {
  pass(ms: number): Promise<void>;
  /** Absent where the clock is the real one. */
  back?(ms: number): void;
}

class Replay {
  readonly #bench: Bench;
  readonly #time: Time;
  readonly #run: number;
  readonly #model = new MemoryStore({ clock: { now: () => this.#nowMs } });
  readonly #charged: { request: StoreRequest; reply: StoreReply }[] = [];
  #nowMs = 0;
  #numbers: Numbers;
  #book: RuleBook;
  readonly #storage: Storage;
  #mostLimit: number;
  #expiresAtMs = 0;
  #entries = 0;

  constructor(bench: Bench, time: Time, numbers: Numbers, storage: Storage = "packed") {
    this.#bench = bench;
    this.#time = time;
    this.#storage = storage;
    this.#run = bench.runs++;
    this.#numbers = numbers;
    this.#mostLimit = numbers.limit;
    this.#book = this.#bookOf(numbers);
  }

  #bookOf({ limit, windowMs }: Numbers): RuleBook {
    const id = `ring-${this.#run}`;
    const window = `${windowMs}ms` as const;
    return compileRuleBook([{ id, key: [], algorithm: "rolling-window", storage: this.#storage, limit, window }], 1);
  }

  async take({ kind, chance, shares, numbers }: Step): Promise<void> {
    const { limit, windowMs } = this.#numbers;
    if (kind === "checks") {
      await this.decide(
        shares.map((part) => 1 + Math.floor(part * (limit - 1))),
        true,
      );
    } else if (kind === "peek") await this.decide([1 + Math.floor(chance * limit)], false);
    else if (kind === "wait") await this.#time.pass(Math.ceil(chance ** 4 * windowMs * 1.02));
    else if (kind === "refund") await this.refund(chance);
    else if (kind === "edit") this.#edit(numbers);
    else if (this.#time.back !== undefined && windowMs > 20_000) {
      // Only while the key lives: one that ended before the clock stepped back is gone, in Redis as in memory.
      await this.decide([1], true);
      if (this.#nowMs + 5_000 < this.#expiresAtMs) this.#time.back(Math.floor(chance * 5_000));
    }
    await this.look();
  }

  async decide(costs: readonly number[], charge: boolean): Promise<void> {
    const requests = costs.map((cost): StoreRequest => {
      const checks = this.#book.checks({}, cost);
      return { checks, charge, entryId: `e${this.#entries++}`, id: undefined, rulesVersion: 1, fingerprint: "" };
    });
    const replies = await Promise.all(requests.map((request) => this.#bench.store.decide(request)));
    for (const i of charge ? inOrderOfGroups(requests) : requests.keys()) {
      const request = requests[i]!;
      const lua = replies[i]!;
      this.#nowMs = lua.nowMs;
      const ts = this.#model.decide(request);
      this.#bench.seen.decisions++;
      if (JSON.stringify(lua.verdicts) !== JSON.stringify(ts.verdicts)) {
        const told = { run: this.#run, numbers: this.#numbers, cost: costs[i], nowMs: lua.nowMs };
        expect({ ...told, verdicts: lua.verdicts }).toEqual({ ...told, verdicts: ts.verdicts });
      }
      const [{ charged, allowed, resetAfterMs }] = lua.verdicts as [Verdict];
      // Whoever is refused after an edit, or only looked, makes the key live as long as it now matters.
      const livesUntilMs = lua.nowMs + resetAfterMs;
      if (!allowed) this.#expiresAtMs = Math.max(this.#expiresAtMs, livesUntilMs);
      if (!charged) continue;
      this.#charged.push({ request, reply: lua });
      this.#expiresAtMs = livesUntilMs;
    }
  }

  /** Mostly a late one: its place is still in the ring. Half are the very last: then another is the newest. */
  async refund(chance: number): Promise<void> {
    const last = this.#charged.length - 1;
    const [past] = this.#charged.splice(chance < 0.5 ? last : Math.floor(last * (1 - chance ** 5)), 1);
    if (past === undefined) return;
    const { checks, entryId } = past.request;
    const charges = checks.map((check, i) => chargedBy(past.reply, i, check, entryId));
    const refund = { charges, id: undefined };
    const lua = await this.#bench.store.refund(refund);
    this.#nowMs = this.#bench.lastNowMs;
    expect(lua).toBe(this.#model.refund(refund));
    await this.decide([0], false);
    if (this.#storage === "sorted-set") return;
    // An emptied ring lives on only for its clock, where that is ahead (decision 11): for the millisecond of its last charge.
    const { key } = checks[0]!;
    if ((await this.#bench.ring(key))?.capacity === 0) this.#expiresAtMs = charges[0]!.atMs + 1;
  }

  /**
   * In real time the window stays: Redis keeps a key for the whole millisecond at which its count ends, so that a window that
   * was made longer in just this one would still find it.
   */
  #edit(numbers: Numbers): void {
    const windowMs = this.#time.back === undefined ? this.#numbers.windowMs : numbers.windowMs;
    this.#numbers = { limit: numbers.limit, windowMs };
    this.#mostLimit = Math.max(this.#mostLimit, numbers.limit);
    this.#book = this.#bookOf(this.#numbers);
  }

  /** What is stored is as it should be, and is what this test is about. */
  async look(): Promise<void> {
    const { seen } = this.#bench;
    const { key } = this.#book.checks({}, 1)[0]!;
    if (this.#storage === "sorted-set") {
      // Each insert evicts first.
      expect(await this.#bench.members(key)).toBeLessThanOrEqual(this.#mostLimit);
      return;
    }
    const ring = await this.#bench.ring(key);
    if (ring === undefined) return;
    expect(ring.expiresAtMs).toBe(this.#expiresAtMs);
    expect(ring.bytes).toBe(HEADER_BYTES + ring.capacity * ring.width);
    expect(ring.count).toBeLessThanOrEqual(ring.capacity);
    expect(ring.capacity).toBeLessThanOrEqual(this.#mostLimit);
    seen.widths.add(ring.width);
    if (ring.bytes < SHORT_BYTES) return;
    seen.long++;
    if (ring.head + ring.count > ring.capacity) seen.seams++;
  }
}

/** Like requests of one turn are decided together, each group in the place of its first. */
function inOrderOfGroups(requests: readonly StoreRequest[]): number[] {
  const batch = requests.map((request) => ({ request, recordKey: undefined }));
  return encodeSingles(batch, 0).groups.flatMap(({ members }) => members);
}

async function replayAll(replay: Replay, schedule: readonly Step[]): Promise<void> {
  for (const step of schedule) await replay.take(step);
}

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

// Schedules depend on real time: shrinking one would find others.
const once = { seed, endOnFailure: true } as const;

describe.skipIf(whyMissing("redis"))("long logs, in real time", () => {
  let bench: Bench;
  beforeAll(async () => {
    if (whyMissing("redis")) return;
    bench = new Bench(await startRedis());
  });
  afterAll(() => bench?.close());

  const windowMs = fc.integer({ min: 10, max: 60 });
  const start = fc.record({ limit, windowMs });

  test("rings that wrap many times get the model's verdicts, through refunds and edits", async () => {
    console.log(`long-rings: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
    const replayed = fc.asyncProperty(start, steps(start, 1, 200), (numbers, schedule) =>
      replayAll(new Replay(bench, { pass }, numbers), schedule),
    );
    await fc.assert(replayed, { ...once, numRuns: 6 });
    const { decisions, long, seams } = bench.seen;
    console.log(`long-rings: ${decisions} decisions in real time; ${long} looks at long rings, ${seams} across a seam`);
    // 99 to 418 were seen: how often a ring wraps depends on the machine's pace.
    expect(seams).toBeGreaterThan(10);
  });

  test("a limit that is lowered beneath a long log is judged as by the model", async () => {
    const numbers = { limit: 400, windowMs: 60_000 };
    const replay = new Replay(bench, { pass }, numbers);
    const step = { chance: 0, shares: [0], numbers };
    await replay.decide([300], true);
    await replay.take({ ...step, kind: "edit", numbers: { ...numbers, limit: 40 } });
    // Cost 1 on a counter of its own: what the plain script is for, were the log short.
    await replay.take({ ...step, kind: "checks" });
    await replay.take({ ...step, kind: "edit", numbers: { ...numbers, limit: 302 } });
    for (let i = 0; i < 3; i++) await replay.take({ ...step, kind: "checks" });
  });

  test("sorted sets of thousands of entries get the model's verdicts, and keep nothing that has left", async () => {
    const replayed = fc.asyncProperty(start, steps(start, 1, 100), (numbers, schedule) =>
      replayAll(new Replay(bench, { pass }, numbers, "sorted-set"), schedule),
    );
    await fc.assert(replayed, { ...once, numRuns: 4 });
    const whole = new Replay(bench, { pass }, { limit: 5_000, windowMs: 60_000 }, "sorted-set");
    await whole.decide([4_321], true);
    await whole.decide([0], false);
  });

  test("checks of one turn are each judged by their own numbers, be it on one key or on several", async () => {
    const rules: Rule[] = [
      {
        id: "mixed",
        key: ["user"],
        match: { path: "/m/**" },
        algorithm: "rolling-window",
        limit: 6,
        window: "1h",
        overrides: [{ match: { path: "/m/few" }, limit: 3 }],
      },
      { id: "other", key: ["user"], match: { path: "/o" }, algorithm: "rolling-window", limit: 2, window: "30m" },
    ];
    const book = compileRuleBook(rules, 1);
    let nowMs = 0;
    const model = new MemoryStore({ clock: { now: () => nowMs } });
    for (const paths of [
      ["/m/few", "/o"],
      ["/m/all", "/m/few", "/o", "/m/all"],
      ["/m/few", "/m/all", "/o", "/m/few"],
    ]) {
      const requests = paths.map((path, i): StoreRequest => {
        const checks = book.checks({ user: "u", path }, undefined);
        return { checks, charge: true, entryId: `m${i}`, id: undefined, rulesVersion: 1, fingerprint: "" };
      });
      const replies = await Promise.all(requests.map((request) => bench.store.decide(request)));
      for (const i of inOrderOfGroups(requests)) {
        nowMs = replies[i]!.nowMs;
        expect(replies[i]!.verdicts, `${paths} at ${i}`).toEqual(model.decide(requests[i]!).verdicts);
      }
    }
  });

  test("two requests that drew the same entry id both count in a sorted set", async () => {
    const rule = {
      id: "drawn",
      key: [],
      algorithm: "rolling-window",
      storage: "sorted-set",
      limit: 9,
      window: "1h",
    } as const;
    const checks = compileRuleBook([rule], 1).checks({}, 2);
    const remaining: number[] = [];
    for (let i = 0; i < 3; i++) {
      const request = { checks, charge: true, entryId: "same", id: undefined, rulesVersion: 1, fingerprint: "" };
      remaining.push((await bench.store.decide(request)).verdicts[0]!.remaining);
      await pass(2);
    }
    expect(remaining).toEqual([7, 5, 3]);
  });

  test("leases that ended by themselves do not pile up under one that lives", async () => {
    const rule = { id: "piled", key: [], algorithm: "concurrency", limit: 1_000, ttl: "40ms" } as const;
    const checks = compileRuleBook([rule], 1).checks({}, 10);
    for (let i = 0; i < 20; i++) {
      await bench.store.decide({
        checks,
        charge: true,
        entryId: `l${i}`,
        id: undefined,
        rulesVersion: 1,
        fingerprint: "",
      });
      await pass(10);
    }
    // Five terms' worth of them were given; about one is alive.
    expect(await bench.members(checks[0]!.key)).toBeLessThan(100);
  });
});

describe.skipIf(whyMissing("redis", "faketime"))("long rings, on a clock that is stepped", () => {
  let bench: Bench | undefined;
  afterEach(async () => {
    await bench?.close();
    bench = undefined;
  });

  /** A bench whose time passes when it is told to. The clock goes on by itself too, by the little that the test takes. */
  async function steppedBench(): Promise<{ bench: Bench; time: Required<Time> }> {
    const redis = await startRedis({ faketime: true });
    bench = new Bench(redis);
    let aheadMs = 0;
    const step = (ms: number): void => {
      aheadMs += ms;
      redis.stepClock(aheadMs / 1_000);
    };
    return { bench, time: { pass: async (ms) => step(ms), back: (ms) => step(-ms) } };
  }

  // Either side of where the slots become wider: 65.5 s, 4.66 h, 49.7 d.
  const edges = [2 ** 16, 2 ** 24, 2 ** 32].flatMap((range) => [range - 1, range, range + 1]);
  const windows = [20_000, 60_000, ...edges, 70_000, 5 * 3_600_000, 60 * 86_400_000, 365 * 86_400_000];

  test("entries nearly a window apart are told apart, for every width of slot", async () => {
    const { bench, time } = await steppedBench();
    for (const windowMs of [...windows, 2 * 2 ** 16 - 1, 2 * 2 ** 24 - 1, 2 * 2 ** 32 - 1]) {
      const replay = new Replay(bench, time, { limit: 400, windowMs });
      for (const share of [0.01, 0.44, 0.5, 0.04, 0.009, 0.003, 0.3, 0.3, 0.39, 0.01]) {
        await replay.decide([150, 1, 1], true);
        await replay.decide([0, 1, 150, 400], false);
        await time.pass(Math.floor(share * windowMs));
      }
    }
  });

  test("a ring that grows while it lies across its seam keeps every entry, by single units as by many", async () => {
    const { bench, time } = await steppedBench();
    const windowMs = 3_600_000;
    const replay = new Replay(bench, time, { limit: 1_000, windowMs });
    await replay.decide([200], true);
    await time.pass(windowMs / 2);
    await replay.decide([100], true);
    // The first two hundred leave: their slots are taken again from the start, then the ring is full and grows.
    await time.pass(windowMs / 2);
    for (let i = 0; i < 300; i++) await replay.decide([1], true);
    // Every one of the hundred must leave at its time, and none of the rest before.
    await time.pass(windowMs / 2);
    await replay.decide([0], false);
    await replay.decide([750], true);
    await time.pass(windowMs / 2 - 10_000);
    await replay.decide([1], true);
  });

  test("a ring whose only charge is refunded while its clock is ahead keeps that clock, and nothing else", async () => {
    const { bench, time } = await steppedBench();
    const replay = new Replay(bench, time, { limit: 400, windowMs: 70_000 });
    await replay.decide([200], true);
    time.back(4_000);
    await replay.refund(0);
    await replay.look();
    await replay.decide([1], true);
    await replay.look();
  });

  test("windows edited across every width keep the model's verdicts", async () => {
    const { bench, time } = await steppedBench();
    const windowMs = fc.constantFrom(...windows);
    const start = fc.record({ limit, windowMs });
    const edits = fc.record({ limit: editedLimit, windowMs });
    const replayed = fc.asyncProperty(start, steps(edits, 8, 120), (numbers, schedule) =>
      replayAll(new Replay(bench, time, numbers), schedule),
    );
    await fc.assert(replayed, { ...once, numRuns: 16 });
    const { decisions, long, seams, widths } = bench.seen;
    console.log(
      `long-rings: ${decisions} decisions on a stepped clock; ${long} looks at long rings, ${seams} across a seam`,
    );
    expect([...widths].sort()).toEqual([2, 3, 4, 5]);
    expect(seams).toBeGreaterThan(50);
  });
});
