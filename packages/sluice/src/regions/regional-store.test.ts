/** Regions on memory stores: what a request under rules of both scopes does, and what each call means for a global rule. */
import { describe, expect, test, vi } from "vitest";
import { SluiceError } from "../errors.js";
import { poolKey } from "../keys.js";
import { createLimiter, type Limiter } from "../limiter/limiter.js";
import type { Rule } from "../rules/rule.js";
import { compileRuleBook } from "../rules/rule-book.js";
import { InstanceCount, type OnBeat } from "../store/instance-count.js";
import { MemoryStore } from "../store/memory/memory-store.js";
import type { StoreRequest } from "../store/store.js";
import { homePlan } from "./home-fetches.js";
import { RegionalStore } from "./regional-store.js";

const GLOBAL: Rule = {
  id: "all",
  key: ["user"],
  scope: "global",
  algorithm: "rolling-window",
  limit: 10,
  window: "1h",
};
/** A region's first fetch brings more units than a test uses: no other fetch follows. */
const PLENTY: Rule = { ...GLOBAL, limit: 1_000_000 };
const HERE: Rule = { id: "here", key: ["user"], algorithm: "rolling-window", limit: 3, window: "1h" };

/** A global store that can be cut off. */
class Home extends MemoryStore {
  isAway = false;
  decides = 0;

  override decide(...args: Parameters<MemoryStore["decide"]>): ReturnType<MemoryStore["decide"]> {
    if (this.isAway) throw new SluiceError("store-unavailable", "cut off", { cause: new Error("no route") });
    this.decides++;
    return super.decide(...args);
  }
}

interface World {
  readonly home: Home;
  readonly eu: Limiter;
  readonly us: Limiter;
}

function open(...rules: readonly Rule[]): World {
  const home = new Home();
  const region = (name: string): Limiter =>
    createLimiter({ rules, store: new MemoryStore(), globalStore: home, region: name });
  return { home, eu: region("eu"), us: region("us") };
}

async function passed(limiter: Limiter, count: number, attributes = { user: "a" }): Promise<number> {
  let allowed = 0;
  for (let i = 0; i < count; i++) if ((await limiter.check(attributes)).allowed) allowed++;
  return allowed;
}

describe("a global rule", () => {
  test("is one limit for all regions", async () => {
    const { eu, us } = open(GLOBAL);
    expect((await passed(eu, 6)) + (await passed(us, 20)) + (await passed(eu, 20))).toBe(10);
    const refused = await us.check({ user: "a" });
    expect(refused).toMatchObject({ allowed: false, reason: "limit", rule: "all", limit: 10, remaining: 0 });
    expect(refused.retryAfterMs).toBeGreaterThan(1_000);
  });

  test("is decided from the region's units: prefetched, and remaining is a lower bound", async () => {
    const { eu, home } = open({ ...GLOBAL, limit: 100_000 });
    const first = await eu.check({ user: "a" });
    expect(first).toMatchObject({ allowed: true, guarantee: "prefetched" });
    expect(first.remaining).toBeLessThan(100_000);
    await passed(eu, 10);
    expect(home.decides).toBeLessThan(4);
    expect(eu.regionStats()).toMatchObject({ region: "eu", requests: 11, isCutOff: false });
  });

  test("a request that another rule refuses takes no unit", async () => {
    const { eu, us } = open(GLOBAL, HERE);
    expect(await passed(eu, 20)).toBe(3);
    await eu.close();
    // Seven are left for the others.
    expect(await passed(us, 20)).toBe(3);
    const { us: third } = open(GLOBAL);
    await third.close();
  });

  test("a request that it refuses is charged under no rule of the region", async () => {
    const { eu, us } = open({ ...GLOBAL, limit: 2 }, HERE);
    expect(await passed(us, 5)).toBe(2);
    expect(await passed(eu, 5)).toBe(0);
    expect((await eu.peek({ user: "a" })).checks).toMatchObject([
      { rule: "all", allowed: false },
      { rule: "here", remaining: 3 },
    ]);
  });

  test("costs are taken as a whole", async () => {
    const { eu, us } = open(GLOBAL);
    expect((await eu.check({ user: "a" }, { cost: 8 })).allowed).toBe(true);
    expect((await us.check({ user: "a" }, { cost: 3 })).allowed).toBe(false);
    await eu.close();
    expect((await us.check({ user: "a" }, { cost: 2 })).allowed).toBe(true);
    expect(await us.check({ user: "a" }, { cost: 11 })).toMatchObject({ reason: "cost-exceeds-limit" });
  });

  test("an id is charged once, and its units are fetched before it is decided", async () => {
    const { eu, us } = open(GLOBAL);
    const first = await eu.check({ user: "a" }, { id: "x" });
    const again = await eu.check({ user: "a" }, { id: "x" });
    expect([first.allowed, again.allowed]).toEqual([true, true]);
    expect((await passed(eu, 20)) + (await passed(us, 20))).toBe(9);
  });

  test("a refund gives the unit back to the region, once", async () => {
    const { eu } = open(PLENTY);
    await eu.check({ user: "a" });
    // Later than the fetch that brought the units.
    await new Promise((resolve) => setTimeout(resolve, 5));
    const used = await eu.check({ user: "a" });
    expect(await eu.refund(used)).toBe(true);
    expect(await eu.refund(used)).toBe(false);
    expect((await eu.check({ user: "a" }, { cost: 0 })).remaining).toBe(used.remaining! + 1);
  });

  test("a refund of a use that was reported to home gives nothing back, reports that, and leaves the id with its charge", async () => {
    class Region extends MemoryStore {
      poolKey = "";
      override askForPool(...args: Parameters<MemoryStore["askForPool"]>): ReturnType<MemoryStore["askForPool"]> {
        this.poolKey = args[0];
        return super.askForPool(...args);
      }
    }
    const store = new Region();
    const eu = createLimiter({ rules: [PLENTY], store, globalStore: new Home(), region: "eu" });
    await eu.check({ user: "a" });
    const told = await eu.check({ user: "a" }, { id: "told" });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const isMine = (): boolean =>
      store.askForPool(store.poolKey, { name: 1, onlySeq: 0, givesBack: "no", leaseMs: 1 }).isMine;
    expect(isMine()).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await eu.refund(told)).toBe(false);
    expect(await eu.refund("told")).toBe(false);
    const open = await eu.check({ user: "a" });
    expect(await eu.check({ user: "a" }, { id: "told" })).toMatchObject({ allowed: true, remaining: told.remaining });
    expect((await eu.check({ user: "a" }, { cost: 0 })).remaining).toBe(open.remaining);
    expect(await eu.refund(open)).toBe(true);
    expect((await eu.check({ user: "a" }, { cost: 0 })).remaining).toBe(open.remaining! + 1);
  });

  test("a charge is made in the global store at once", async () => {
    const { eu, us, home } = open(GLOBAL);
    const charged = await eu.charge({ user: "a" }, { cost: 25 });
    expect(charged).toMatchObject({ allowed: true, debt: 15 });
    expect(await passed(us, 3)).toBe(0);
    expect(home.decides).toBeGreaterThan(0);
  });

  test("a charge with an id is made once, and is refunded by its id or by a retry's decision", async () => {
    const { eu, us } = open(GLOBAL, HERE);
    const left = async (): Promise<number[]> => {
      const { checks } = await eu.peek({ user: "a" }, { cost: 0 });
      return checks.map(({ remaining }) => remaining);
    };
    const charge = () => eu.charge({ user: "a" }, { cost: 2, id: "c" });
    const first = await charge();
    expect(JSON.parse(JSON.stringify(await charge())).checks).toEqual(first.checks);
    expect(await left()).toEqual([8, 1]);
    expect(await us.refund("c")).toBe(false);
    expect([await eu.refund("c"), await eu.refund("c")]).toEqual([true, false]);
    expect(await left()).toEqual([10, 3]);
    await charge();
    const retry = await charge();
    expect([await eu.refund(retry), await eu.refund("c")]).toEqual([true, false]);
    expect(await left()).toEqual([10, 3]);
  });

  test("a retry of a charge gets the first decision, though the rules were edited", async () => {
    const { eu } = open(GLOBAL);
    const first = await eu.charge({ user: "a" }, { cost: 2, id: "c" });
    eu.setRules([GLOBAL, { ...GLOBAL, id: "second" }]);
    const retry = await eu.charge({ user: "a" }, { cost: 2, id: "c" });
    expect(retry.checks).toEqual(first.checks);
    const { checks } = await eu.peek({ user: "a" }, { cost: 0 });
    expect(checks.map(({ remaining }) => remaining)).toEqual([8, 10]);
  });

  test("while home is away, an id that only the region remembers is refunded; another is not reported as unknown", async () => {
    const { eu, home } = open(PLENTY, HERE);
    await eu.check({ user: "a" }, { id: "here" });
    home.recall = () => {
      throw new SluiceError("store-unavailable", "cut off");
    };
    expect(await eu.refund("here")).toBe(true);
    await expect(eu.refund("never")).rejects.toThrow("cut off");
  });

  test.each([GLOBAL, PLENTY])(
    "a repeated id has the numbers of its first answer, from a store in another process",
    async (rule) => {
      class Remote extends MemoryStore {
        override decide(...args: Parameters<MemoryStore["decide"]>): ReturnType<MemoryStore["decide"]> {
          return structuredClone(super.decide(...args));
        }
      }
      const eu = createLimiter({ rules: [rule], store: new Remote(), globalStore: new Home(), region: "eu" });
      for (let i = 0; i < 14; i++) {
        const first = await eu.check({ user: "a" }, { id: `id-${i}` });
        for (const ask of ["check", "peek"] as const) {
          const again = await eu[ask]({ user: "a" }, { id: `id-${i}` });
          expect([i, ask, JSON.stringify(again)]).toEqual([i, ask, JSON.stringify(first)]);
        }
      }
      eu.setRules([{ ...rule, scope: "region" }]);
      expect((await eu.check({ user: "a" }, { id: "id-3" })).resetAfterMs).toBeGreaterThanOrEqual(0);
    },
  );

  test("units are given back by giveBack, and a reset starts over in every region", async () => {
    const { eu, us } = open(GLOBAL);
    expect(await passed(eu, 20)).toBe(10);
    await eu.reset("all", { user: "a" });
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    expect(await passed(us, 20)).toBeGreaterThan(5);
  });

  test("a peek counts what is at home and in the region, and charges nothing", async () => {
    const { eu, us } = open(GLOBAL);
    await passed(us, 4);
    expect(await eu.peek({ user: "a" })).toMatchObject({ allowed: true });
    const { rules } = await eu.explain({ user: "a" });
    expect(rules[0]).toMatchObject({ rule: "all", matched: true });
    expect((await passed(eu, 20)) + (await passed(us, 20))).toBe(6);
  });

  test("unused units go back at close", async () => {
    const { eu, us } = open({ ...GLOBAL, limit: 100_000 });
    await passed(eu, 5);
    expect(eu.regionStats()!.units).toBeGreaterThan(0);
    await eu.close();
    expect((await us.peek({ user: "a" })).remaining).toBe(99_995);
  });

  test("a shadow rule lets the request pass, and counts once there are units", async () => {
    const { eu } = open({ ...GLOBAL, mode: "shadow", limit: 2 }, HERE);
    expect(await passed(eu, 5)).toBe(3);
  });
});

describe("cut off from home", () => {
  async function cutOff(onStoreFailure: "local" | "allow" | "deny"): Promise<{ world: World; spent: number }> {
    const world = open({ ...GLOBAL, limit: 3_600_000, onStoreFailure }, HERE);
    await world.eu.check({ user: "a" });
    world.home.isAway = true;
    return { world, spent: world.eu.regionStats()!.units };
  }

  test("deny refuses, and charges no other rule", async () => {
    const { world } = await cutOff("deny");
    const decision = await world.us.check({ user: "b" });
    expect(decision).toMatchObject({ allowed: false, degraded: "deny", reason: "store-unavailable" });
    expect((await world.us.explain({ user: "b" }).catch(() => undefined))?.decision.checks[1]?.remaining ?? 3).toBe(3);
  });

  test("what the region holds is spent first", async () => {
    const { world, spent } = await cutOff("deny");
    expect(spent).toBeGreaterThan(1);
    expect(await world.eu.check({ user: "a" })).toMatchObject({ allowed: true, guarantee: "prefetched" });
  });

  test("allow lets the request pass, and the rules of the region still count", async () => {
    const { world } = await cutOff("allow");
    const decision = await world.us.check({ user: "b" });
    expect(decision).toMatchObject({ allowed: true, degraded: "allow" });
    expect(await passed(world.us, 5, { user: "b" })).toBe(2);
  });

  test("local counts in the region's store, at the region's share", async () => {
    const world = open({ ...GLOBAL, onStoreFailure: "local" });
    expect(await passed(world.us, 5)).toBe(5);
    world.home.isAway = true;
    const decisions = [];
    for (let i = 0; i < 30; i++) decisions.push(await world.eu.check({ user: "new" }));
    const local = decisions.filter(({ degraded }) => degraded === "local");
    // Never reached by this key: its share of the limit is that of one region among those known, here one.
    expect(local.filter(({ allowed }) => allowed).length).toBeLessThanOrEqual(10);
    expect(local[0]!.checks[0]).toMatchObject({ rule: "all", limit: 10 });
  });

  test("when home is back it is used again, and events report both", async () => {
    const { world } = await cutOff("allow");
    const events: string[] = [];
    world.us.on("degraded", () => events.push("degraded"));
    await world.us.check({ user: "b" });
    expect(events).toEqual(["degraded"]);
    expect(world.us.regionStats()!.isCutOff).toBe(true);
    world.home.isAway = false;
    await new Promise((resolve) => setTimeout(resolve, 150));
    await world.us.check({ user: "c" });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await world.us.check({ user: "c" })).toMatchObject({ allowed: true, guarantee: "prefetched" });
    expect(world.us.regionStats()!.isCutOff).toBe(false);
  });
});

test("a flood of keys: a bounded number of pools is watched, and their units go back in batches", async () => {
  const { eu } = open(GLOBAL);
  const KEYS = 16_500;
  for (let i = 0; i < KEYS; i += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, n) => eu.check({ user: `flood-${i + n}` })));
  }
  expect(eu.regionStats()!.pools).toBeLessThanOrEqual(16_384);
  await eu.close();
  expect(eu.regionStats()!.pools).toBe(0);
});

test("a single request for a key asks home once, and holds nothing beyond its unit", async () => {
  const { eu, us, home } = open(GLOBAL);
  await eu.check({ user: "a" });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(home.decides).toBe(1);
  expect((await us.peek({ user: "a" })).remaining).toBe(9);
});

describe("heartbeats to home", () => {
  class BeatenHome extends Home {
    onBeat: OnBeat | undefined;

    countInstances(_region?: string, onBeat?: OnBeat): InstanceCount {
      this.onBeat = onBeat;
      return new InstanceCount(() => new Promise(() => {}));
    }
  }

  test("report the round trip, and end a cut-off if no fetch was tried for two seconds", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      const home = new BeatenHome();
      const rules = [{ ...GLOBAL, onStoreFailure: "allow" as const }];
      const eu = createLimiter({ rules, store: new MemoryStore(), globalStore: home, region: "eu" });
      home.onBeat!(70);
      expect(eu.regionStats()).toMatchObject({ roundTripMs: 70, isCutOff: false });
      home.isAway = true;
      const beforeMs = Date.now();
      await eu.check({ user: "a" });
      expect(eu.regionStats()!.cutOffSinceMs).toBeGreaterThanOrEqual(beforeMs);
      home.onBeat!(70);
      expect(eu.regionStats()!.isCutOff).toBe(true);
      vi.advanceTimersByTime(2_001);
      home.onBeat!(70);
      expect(eu.regionStats()).toMatchObject({ isCutOff: false });
      expect(eu.regionStats()!.cutOffSinceMs).toBeUndefined();
    } finally {
      vi.useRealTimers();
    }
  });
});

test("whatever the instances of a region share goes through the region's store", async () => {
  const shared = { leads: true, limits: [7] };
  const regionStore = Object.assign(new MemoryStore(), { shareLimits: async () => shared });
  const store = new RegionalStore({ region: "eu", regionStore, globalStore: new MemoryStore(), isGlobal: () => false });
  const request = { instance: "a", leadsMs: 1_000, limits: [{ rule: "r", limit: 5 }] };
  expect(await store.shareLimits!(request)).toBe(shared);
});

test("a request that finds all units of the pool in instances' hands gets its own from home, at once", async () => {
  const home = new Home();
  const regionStore = new MemoryStore();
  const store = new RegionalStore({ region: "eu", regionStore, globalStore: home, isGlobal: () => true });
  const rule = { ...GLOBAL, limit: 100, window: "1m", prefetch: "5s" } as Rule;
  const [check] = compileRuleBook([rule], 1).checks({ user: "a" }, 1);
  const request = { charge: true, entryId: "e", id: undefined, fingerprint: "", rulesVersion: 1 };
  const decide = async (more: Partial<StoreRequest> = {}) =>
    await store.decide({ ...request, checks: [check!], ...more });
  await decide();
  // A fetch brings 40 units, and an instance holds all of them.
  const key = poolKey(check!.key);
  const { nowMs, numbers } = regionStore.askForPool(key, { name: 1, onlySeq: 0, givesBack: "no", leaseMs: 1_000 });
  const { seq, used, told } = numbers;
  const fetch = { holder: `eu.${numbers.name.toString(36)}`, seq, used, held: told, want: 40, need: 40 };
  const checks = [{ ...check!, plan: homePlan(check!.plan), cost: 0 }];
  expect(home.decide({ ...request, checks, fetches: [fetch] }).grants).toMatchObject([{ units: 40, kept: told }]);
  const fill = { isAnswered: true, units: 40, kept: told, unitsEndMs: nowMs + 5_000, lowPart: -1 };
  const nothing = {
    renewAtMs: nowMs + 5_000,
    refusedForMs: 0,
    refusedCost: 1,
    retryAfterMs: 0,
    resetAfterMs: 0,
    rate: 0,
    share: 0,
  };
  regionStore.fillPool(key, { ...fill, ...nothing, seq });
  await decide({ fetches: [{ holder: "h", seq: 1, used: 0, held: 0, want: 39, need: 39 }] });
  const { decides } = home;
  expect((await decide()).verdicts).toMatchObject([{ allowed: true }]);
  expect(home.decides - decides).toBe(1);
  await store.close();
});

describe("options", () => {
  test("a global rule without a global store is a mistake, at the start and later", () => {
    expect(() => createLimiter({ rules: [GLOBAL] })).toThrow(/rules\[0\]\.scope: expected region, got global/);
    const limiter = createLimiter({ rules: [HERE] });
    expect(() => limiter.setRules([HERE, GLOBAL])).toThrow(/rules\[1\]\.scope/);
    expect(limiter.rules).toEqual([HERE]);
  });

  test("region and global store require each other", () => {
    const store = new MemoryStore();
    expect(() => createLimiter({ rules: [], globalStore: store })).toThrow(/region: expected one beside globalStore/);
    expect(() => createLimiter({ rules: [], region: "eu" })).toThrow(/globalStore: expected one beside region/);
    expect(() => createLimiter({ rules: [], region: "e u", globalStore: store })).toThrow(/region: expected a name/);
  });
});
