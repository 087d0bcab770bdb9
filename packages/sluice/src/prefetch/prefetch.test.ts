import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { passed, useVirtualTime, within } from "../../../../test/harness/virtual-time.js";
import { SluiceError } from "../errors.js";
import { createLimiter, type Limiter } from "../limiter/limiter.js";
import type { Rule } from "../rules/rule.js";
import { compileRuleBook } from "../rules/rule-book.js";
import { MemoryStore } from "../store/memory/memory-store.js";
import type { Store, StoreReply, StoreRequest } from "../store/store.js";
import { Prefetch } from "./prefetch.js";
import { refundUses } from "./refund-uses.js";
import { isFromHand } from "./reply-from-hand.js";

const hot: Rule = {
  id: "hot",
  key: ["user"],
  algorithm: "rolling-window",
  limit: 1_000,
  window: "1s",
  prefetch: "20ms",
};

/** A store a millisecond away, on the model. It can become unreachable, lose replies, and count calls. */
class FarStore extends MemoryStore implements Store {
  readonly isRemote = true;
  readonly requests: StoreRequest[] = [];
  isAway = false;
  losesReplies = false;

  // @ts-expect-error: the model answers at once, this one does not.
  override async decide(request: StoreRequest): Promise<StoreReply> {
    await passed(0.5);
    if (this.isAway) throw new SluiceError("store-unavailable", "away");
    this.requests.push(request);
    const reply = super.decide(request);
    await passed(0.5);
    if (this.losesReplies) throw new SluiceError("store-unavailable", "lost");
    return reply;
  }
}

let store: FarStore;
let limiter: Limiter;

beforeEach(() => {
  useVirtualTime();
  store = new FarStore();
  limiter = createLimiter({ store, rules: [hot] });
});

afterEach(async () => {
  await awaited(limiter.close());
  vi.useRealTimers();
});

/** A request may wait for one fetch and be decided by the next. */
const awaited = <T>(made: Promise<T>): Promise<T> => within(20, made);

function check(attributes = { user: "u" }, options = {}): ReturnType<Limiter["check"]> {
  return awaited(limiter.check(attributes, options));
}

/** Asks once per millisecond, five requests each; returns how many passed. */
async function warm(ms = 60): Promise<number> {
  const all: ReturnType<Limiter["check"]>[] = [];
  for (let i = 0; i < ms; i++) {
    for (let n = 0; n < 5; n++) all.push(limiter.check({ user: "u" }));
    await vi.advanceTimersByTimeAsync(1);
  }
  const decisions = await awaited(Promise.all(all));
  return decisions.filter(({ allowed }) => allowed).length;
}

const remaining = async (): Promise<number> => (await awaited(limiter.peek({ user: "u" }))).remaining!;

test("a cold key is decided by the store, a busy one in process", async () => {
  expect(await check()).toMatchObject({ guarantee: "atomic", remaining: 999 });
  await warm();
  expect(await check()).toMatchObject({ guarantee: "prefetched", allowed: true });
  expect(limiter.prefetchStats()!.units).toBeGreaterThan(0);
});

test("a busy key costs few store calls", async () => {
  limiter.setRules([{ ...hot, limit: 100_000 }]);
  await warm(200);
  store.requests.length = 0;
  await warm(100);
  expect(store.requests.length).toBeLessThan(50);
});

test("unused units of an idle key go back before they expire, and what was used is charged", async () => {
  const allowed = await warm();
  await vi.advanceTimersByTimeAsync(25);
  expect(limiter.prefetchStats()).toMatchObject({ units: 0, keys: 0 });
  expect(await remaining()).toBe(1_000 - allowed);
});

test("closing gives back what is in hand", async () => {
  const allowed = await warm();
  await awaited(limiter.close());
  limiter = createLimiter({ store, rules: [hot] });
  expect(await remaining()).toBe(1_000 - allowed);
});

test("while the store is away units are used until they expire, then the failure policy answers", async () => {
  await warm();
  store.isAway = true;
  const units = limiter.prefetchStats()!.units;
  expect(units).toBeGreaterThan(1);
  expect(await check()).not.toHaveProperty("degraded");
  await vi.advanceTimersByTimeAsync(20);
  expect(await check()).toMatchObject({ degraded: "local" });
});

test("requests that wait for a fetch without an answer share its failure instead of asking one by one", async () => {
  await warm();
  await vi.advanceTimersByTimeAsync(25);
  store.isAway = true;
  let asked = 0;
  const decide = store.decide.bind(store);
  vi.spyOn(store, "decide").mockImplementation((request) => {
    asked++;
    return decide(request);
  });
  const all = await awaited(Promise.all(Array.from({ length: 20 }, () => limiter.check({ user: "u" }))));
  expect(all.map(({ degraded }) => degraded)).toEqual(all.map(() => "local"));
  expect(asked).toBe(1);
});

test("requests under another rule that waited for such a fetch ask by themselves", async () => {
  const other: Rule = { ...hot, id: "other", key: ["other"], limit: 10_000 };
  limiter.setRules([{ ...hot, limit: 10_000 }, other]);
  await warm();
  await vi.advanceTimersByTimeAsync(25);
  let isFirst = true;
  const decide = store.decide.bind(store);
  vi.spyOn(store, "decide").mockImplementation(async (request) => {
    const fails = isFirst;
    isFirst = false;
    if (!fails) return await decide(request);
    await passed(0.5);
    throw new SluiceError("store-unavailable", "the other key's node is away");
  });
  const both = limiter.check({ user: "u", other: "o" });
  const alone = limiter.check({ user: "u" });
  expect(await awaited(both)).toMatchObject({ degraded: "local" });
  expect(await awaited(alone)).not.toHaveProperty("degraded");
});

test("a burst beyond what is left is two calls: the remaining units are used, the rest is refused by the same answer", async () => {
  await warm();
  await vi.advanceTimersByTimeAsync(20);
  const left = await remaining();
  await awaited(limiter.charge({ user: "u" }, { cost: left - 30 }));
  store.requests.length = 0;
  const all = await awaited(Promise.all(Array.from({ length: 100 }, () => limiter.check({ user: "u" }))));
  expect(all.filter(({ allowed }) => allowed)).toHaveLength(30);
  for (const { allowed, reason, retryAfterMs } of all) {
    if (allowed) continue;
    expect(reason).toBe("limit");
    expect(retryAfterMs).toBeGreaterThan(0);
  }
  expect(store.requests.length).toBeLessThanOrEqual(2);
});

test("a burst on a cold key is one check for the store, and each request can be refunded", async () => {
  for (const storage of ["packed", "sorted-set"] as const) {
    limiter.setRules([{ ...hot, id: storage, storage, window: "1h" }]);
    store.requests.length = 0;
    const all = await awaited(Promise.all(Array.from({ length: 100 }, () => limiter.check({ user: "u" }))));
    expect(all.every(({ allowed, guarantee }) => allowed && guarantee === "atomic")).toBe(true);
    expect(store.requests.map(({ checks }) => checks[0]!.cost)).toEqual([100]);
    expect(await remaining()).toBe(900);
    for (const decision of all.slice(0, 3)) expect(await awaited(limiter.refund(decision))).toBe(true);
    expect(await awaited(limiter.refund(all[0]!))).toBe(false);
    expect(await remaining()).toBe(903);
  }
});

test("a burst on a cold bucket gives back no more than the refill has left to pay, however it is refunded", async () => {
  const bucket: Rule = {
    id: "b",
    key: ["user"],
    algorithm: "token-bucket",
    limit: 20,
    window: "20s",
    prefetch: "20ms",
  };
  const others = createLimiter({ store, rules: [bucket] });
  limiter.setRules([bucket]);
  await awaited(others.check({ user: "u" }, { cost: 10 }));
  const burst = await awaited(Promise.all(Array.from({ length: 5 }, () => limiter.check({ user: "u" }))));
  expect(store.requests.at(-1)!.checks[0]!.cost).toBe(5);
  // Two of the five are unpaid then.
  await vi.advanceTimersByTimeAsync(13_000);
  await awaited(limiter.refund(burst[0]!));
  await awaited(others.check({ user: "u" }, { cost: 5 }));
  for (const decision of burst.slice(1)) await awaited(limiter.refund(decision));
  expect(await remaining()).toBe(15);
  await awaited(others.close());
});

test("a burst on a cold key with less room than it needs: as many pass as there is room for", async () => {
  limiter.setRules([{ ...hot, limit: 30 }]);
  const passed = async (times: number): Promise<number> => {
    const all = await awaited(Promise.all(Array.from({ length: times }, () => limiter.check({ user: "u" }))));
    return all.filter(({ allowed }) => allowed).length;
  };
  expect(await passed(20)).toBe(20);
  expect(await passed(100)).toBe(10);
});

test("requests of one turn with other costs, with an id or under other rules are decided one by one", async () => {
  limiter.setRules([hot, { ...hot, id: "beside", key: ["org"], prefetch: undefined } as unknown as Rule]);
  await awaited(
    Promise.all([
      limiter.check({ user: "u" }, { cost: 2 }),
      limiter.check({ user: "u" }, { id: "one" }),
      limiter.check({ user: "u", org: "o" }),
      limiter.check({ user: "u" }),
    ]),
  );
  expect(store.requests.map(({ checks }) => checks.map(({ cost }) => cost))).toEqual([[2], [1], [1, 1], [1]]);
  expect(await remaining()).toBe(995);
});

test("a caller that never lets the event loop turn still fetches ahead", async () => {
  limiter.setRules([{ ...hot, limit: 100_000 }]);
  await warm();
  const { fetches, units } = limiter.prefetchStats()!;
  expect(units).toBeGreaterThan(4);
  for (let i = 1; i < units; i++) expect(limiter.checkNow({ user: "u" })).toHaveProperty("guarantee", "prefetched");
  await Promise.resolve();
  await Promise.resolve();
  expect(limiter.prefetchStats()!.fetches).toBe(fetches + 1);
});

test("a process that was suspended for longer than the prefetch time uses none of its units", async () => {
  await warm();
  expect(limiter.prefetchStats()!.units).toBeGreaterThan(0);
  // The clock goes on, no timer runs: as after SIGCONT.
  const now = performance.now();
  vi.spyOn(performance, "now").mockReturnValue(now + 30);
  expect(await check()).toMatchObject({ guarantee: "atomic" });
  vi.mocked(performance.now).mockRestore();
});

test("units of a grant whose reply was lost are neither used nor counted", async () => {
  const allowed = await warm();
  store.losesReplies = true;
  await vi.advanceTimersByTimeAsync(15);
  store.losesReplies = false;
  await vi.advanceTimersByTimeAsync(30);
  expect(await remaining()).toBeLessThanOrEqual(1_000 - allowed);
});

test("requests with an id and charges are decided by the store, where units in hand count as used", async () => {
  await warm();
  expect(await check({ user: "u" }, { id: "a" })).toMatchObject({ guarantee: "atomic", allowed: true });
  const again = await check({ user: "u" }, { id: "a" });
  expect(again).toMatchObject({ guarantee: "atomic", allowed: true });
  const charged = await awaited(limiter.charge({ user: "u" }, { cost: 2_000 }));
  expect(charged).toMatchObject({ allowed: true, guarantee: "atomic" });
  expect(charged.debt).toBeGreaterThan(1_000);
});

test("if a rule without prefetch also applies, every request goes to the store, which charges both", async () => {
  limiter.setRules([hot, { id: "plain", key: ["user"], algorithm: "fixed-window", limit: 10_000, window: "1h" }]);
  await warm();
  const decision = await check();
  expect(decision.guarantee).toBe("atomic");
  expect(decision.checks.map(({ rule }) => rule)).toEqual(["hot", "plain"]);
});

test("several rules with prefetch are decided in process once all of them have units", async () => {
  limiter.setRules([hot, { ...hot, id: "all", key: [], algorithm: "token-bucket" }]);
  await warm();
  const decision = await check();
  expect(decision).toMatchObject({ guarantee: "prefetched", allowed: true });
  expect(decision.checks).toHaveLength(2);
});

test("a cost above the units in hand goes to the store", async () => {
  await warm();
  const { units } = limiter.prefetchStats()!;
  expect(await check({ user: "u" }, { cost: units + 1 })).toMatchObject({ guarantee: "atomic", allowed: true });
});

test("units fetched under other numbers are no longer used", async () => {
  await warm();
  limiter.setRules([{ ...hot, limit: 1 }]);
  expect(await check()).toMatchObject({ guarantee: "atomic", allowed: false });
});

test("a refund gives a unit back into the hand, or to the counter once it is settled; each once", async () => {
  const allowed = await warm();
  const first = await check();
  expect(first.guarantee).toBe("prefetched");
  const before = limiter.prefetchStats()!.units;
  expect(await limiter.refund(first)).toBe(true);
  expect(limiter.prefetchStats()!.units).toBe(before + 1);
  expect(await limiter.refund(first)).toBe(false);
  const second = await check();
  await vi.advanceTimersByTimeAsync(25);
  expect(await remaining()).toBe(1_000 - allowed - 1);
  expect(await limiter.refund(second)).toBe(true);
  expect(await remaining()).toBe(1_000 - allowed);
});

test("a use settled along with a charge comes before it: once it is paid for, nothing of it goes back", async () => {
  limiter.setRules([{ ...hot, algorithm: "token-bucket", limit: 100, window: "100s" }]);
  while ((await check()).guarantee !== "prefetched");
  const used = await check();
  store.requests.length = 0;
  const large = await awaited(limiter.check({ user: "u" }, { cost: 60 }));
  expect(large).toMatchObject({ allowed: true, guarantee: "atomic" });
  expect(store.requests).toMatchObject([{ checks: [{ cost: 60 }], fetches: [{ used: 2 }] }]);
  // All but the large one is refilled by then.
  await vi.advanceTimersByTimeAsync(10_000);
  const left = await remaining();
  await awaited(limiter.refund(used));
  expect(await remaining()).toBe(left);
});

test("a use whose units expired before they were settled is not reported as refunded: the store has charged it", async () => {
  await warm();
  const used = await check();
  expect(used.guarantee).toBe("prefetched");
  const now = performance.now();
  vi.spyOn(performance, "now").mockReturnValue(now + 30);
  expect(await limiter.refund(used)).toBe(false);
  vi.mocked(performance.now).mockRestore();
});

test("a reset starts the counter over; uses that were not settled yet are forgotten with it", async () => {
  await warm();
  await limiter.reset("hot", { user: "u" });
  await vi.advanceTimersByTimeAsync(25);
  expect(await remaining()).toBe(1_000);
});

test("a limit of 1 admits one request, however many ask", async () => {
  limiter.setRules([{ ...hot, limit: 1, window: "1h" }]);
  expect(await warm()).toBe(1);
});

test("no window holds more than the limit under overload, and little is left unused", async () => {
  limiter.setRules([{ ...hot, limit: 100, window: "100ms" }]);
  const uses: number[] = [];
  const all: Promise<void>[] = [];
  for (let i = 0; i < 1_000; i++) {
    for (let n = 0; n < 2; n++) {
      all.push(limiter.check({ user: "u" }).then(({ allowed }) => void (allowed && uses.push(performance.now()))));
    }
    await vi.advanceTimersByTimeAsync(1);
  }
  await awaited(Promise.all(all));
  let first = 0;
  let most = 0;
  for (let last = 0; last < uses.length; last++) {
    // Decisions of the store are observed half a millisecond after they were made.
    while (uses[first]! <= uses[last]! - 99) first++;
    most = Math.max(most, last - first + 1);
  }
  expect(most).toBeLessThanOrEqual(100);
  expect(uses.length).toBeGreaterThan(950);
});

test("four holders behind a network slower than the prefetch time never use more than the limit in a window", async () => {
  let state = 42;
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
  const rule: Rule = { ...hot, limit: 50, window: "100ms", prefetch: "50ms" };
  const shared = new MemoryStore();
  const far = (): Store =>
    Object.assign(Object.create(shared) as Store, {
      isRemote: true,
      async decide(request: StoreRequest): Promise<StoreReply> {
        await passed(Math.ceil(random() * 30));
        const reply = shared.decide(request);
        await passed(Math.ceil(random() * 30));
        return reply;
      },
      close() {},
    });
  const limiters = Array.from({ length: 4 }, () => createLimiter({ store: far(), rules: [rule] }));
  const spans: [number, number][] = [];
  const all: Promise<void>[] = [];
  for (let i = 0; i < 120; i++) {
    for (const one of limiters) {
      for (let n = 0; n < 3; n++) {
        const fromMs = performance.now();
        const made = one.check({ user: "u" });
        all.push(made.then(({ allowed }) => void (allowed && spans.push([fromMs, performance.now()]))));
      }
    }
    await vi.advanceTimersByTimeAsync(2);
  }
  await vi.advanceTimersByTimeAsync(200);
  await Promise.all(all);
  spans.sort((a, b) => a[1] - b[1]);
  // Only uses whose request and answer lie within a window are certain to have happened in it.
  let most = 0;
  for (let last = 0; last < spans.length; last++) {
    const windowMs = spans[last]![1] - 100;
    let within = 0;
    for (let i = last; i >= 0 && spans[i]![1] > windowMs; i--) if (spans[i]![0] > windowMs) within++;
    most = Math.max(most, within);
  }
  expect(most).toBeLessThanOrEqual(50);
  expect(spans.length).toBeGreaterThan(50);
});

const book = compileRuleBook(
  [{ id: "r", key: [], algorithm: "rolling-window", limit: 1_000, window: "10s", prefetch: "10s" }],
  1,
);
const request: StoreRequest = {
  checks: book.checks({}, undefined),
  charge: true,
  entryId: "e",
  id: undefined,
  fingerprint: "",
  rulesVersion: 1,
};
const pass = {
  allowed: true,
  remaining: 900,
  retryAfterMs: 0,
  resetAfterMs: 0,
  reason: undefined,
  charged: true,
  delayMs: 0,
};
const answer: StoreReply = { nowMs: 1_000, verdicts: [pass], guarantee: "atomic" };

test("a use whose settlement got no answer is not given back into the hand: the store may have charged it", async () => {
  let isLost = false;
  const decide = async ({ fetches }: StoreRequest): Promise<StoreReply> => {
    if (isLost) throw new Error("no answer");
    return fetches === undefined ? answer : { ...answer, grants: [{ units: 4, kept: 0, lifeMs: 10_000 }] };
  };
  const store = { decide } as unknown as Store;
  const prefetch = new Prefetch(store);
  // Until the key is known to be busy, and has units in hand.
  let used = await prefetch.decide(request);
  while (!isFromHand(used)) {
    await vi.advanceTimersByTimeAsync(1);
    used = await prefetch.decide(request);
  }
  isLost = true;
  await prefetch.close();
  expect(await refundUses(store, used, request.checks)).toBe(false);
  expect(prefetch.stats().units).toBe(0);
});

test("if units are scarce, a busy key pauses between fetches", async () => {
  limiter.setRules([{ ...hot, limit: 3_900, prefetch: "80ms" }]);
  let passed = 0;
  const ask = async (ms: number): Promise<void> => {
    for (let i = 0; i < ms; i++) {
      for (let n = 0; n < 4; n++) {
        void limiter.check({ user: "u" }).then(({ allowed }) => {
          if (allowed) passed++;
        });
      }
      await vi.advanceTimersByTimeAsync(1);
    }
  };
  // Slightly more than the limit admits, until every unit that becomes free is wanted.
  await ask(2_000);
  store.requests.length = 0;
  passed = 0;
  await ask(1_000);
  const fetches = store.requests.filter((request) => request.fetches !== undefined).length;
  expect(fetches).toBeLessThanOrEqual(100);
  expect(passed).toBeGreaterThan(3_900 * 0.98);
});
