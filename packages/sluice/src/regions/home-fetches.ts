/**
 * Fetches units from the global store ("home") into the pools of a region, for one of its instances.
 *
 * The region's store coordinates fetches: an instance that finds a pool low or empty asks there first, and a pool has one fetch in flight
 * at a time. The instance that last filled a pool makes sure that unused units go back before they expire. If it crashes, they are charged
 * at their expiry; what was in flight is reported by the next fetch.
 */
import { randomBytes } from "node:crypto";
import type { Fetch } from "../algorithms/grants.js";
import type { GivesBack, PoolAsked } from "../algorithms/pool.js";
import type { Check, CheckPlan } from "../check.js";
import { ExpiringMap } from "../store/expiring-map.js";
import type { Charged, Store, StoreRequest } from "../store/store.js";
import { failedFill, fillOf, RENEW_PART, sizeFetch, usableMs, type Waiting } from "./fetch-size.js";

/** Bound on remembered keys: the busy keys of a process are few. */
const MOST_KEYS = 16_384;
const IDLE_MS = 60_000;
/** How long this instance does not ask the global store again after a failure. */
const AWAY_MS = 100;
/** After this long without a failed fetch, an answered heartbeat ends a cut-off. */
const QUIET_MS = 2_000;
/** How often an instance polls whether another one's fetch has ended. */
const POLL_MS = 10;
/** How long others leave a pool to the fetching instance; or a term, if that is shorter. */
const LONGEST_LEASE_MS = 1_000;
const SHORTEST_TICK_MS = 50;
const MOST_PER_TICK = 256;
/** How long a region's share, as read from the pool, is cached. */
const SHARE_MS = 1_000;

/** `over`: a fetch has ended, whichever instance sent it. */
type Outcome = { readonly kind: "over" } | { readonly kind: "away"; readonly cause: unknown };

/** A pool from this instance's point of view. */
interface Pool {
  readonly key: string;
  plan: CheckPlan;
  home: Check;
  /** Units that requests of this instance wait for, since when, and the least that one of them needs. */
  waiting: number;
  waitingSinceMonotonicMs: number;
  leastCost: number;
  underWay: Promise<Outcome> | undefined;
  /** Our last fill, and when its units expire. */
  seq: number;
  unitsEndMonotonicMs: number;
  renewAtMonotonicMs: number;
  units: number;
  /** Left in the global store after the last fetch. */
  left: number;
  share: number;
  shareReadMonotonicMs: number;
  /** For the map that holds it. */
  endsAtMs: number;
  readonly bytes: 0;
}

interface HomeFetchesOptions {
  readonly region: string;
  readonly regionStore: Store;
  readonly globalStore: Store;
  /** How many regions share the global store, as far as is known. */
  readonly regions: () => number;
}

/** Counts of one instance since its start. */
export interface RegionStats {
  readonly region: string;
  /** Regions that share the global store, by heartbeat; 0 if it was never reached. */
  readonly regions: number;
  /**
   * Requests under a global rule; those that waited for a fetch; those that `local` or `allow` answered because the global store was away.
   */
  readonly requests: number;
  readonly waited: number;
  readonly cutOffRequests: number;
  readonly fetches: number;
  readonly failedFetches: number;
  /** Units in the pools that this instance filled last, and how many pools. */
  readonly units: number;
  readonly pools: number;
  /** Of the last fetch or heartbeat; 0 before the first. */
  readonly roundTripMs: number;
  /** Whether the last fetch failed, and no heartbeat was answered long enough after it. */
  readonly isCutOff: boolean;
  /** Present while cut off: since when, in ms since the epoch. */
  readonly cutOffSinceMs?: number;
}

export class HomeFetches {
  readonly #options: HomeFetchesOptions;
  readonly #byKey = new ExpiringMap<Pool>();
  /** The pools that this instance filled last. */
  readonly #mine = new Set<Pool>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  #awayUntilMonotonicMs = 0;
  #cause: unknown;
  fetches = 0;
  failedFetches = 0;
  roundTripMs = 0;
  /** In ms since the epoch: when the current run of failed fetches began; undefined if the last fetch succeeded. */
  cutOffSinceMs: number | undefined;
  #failedAtMonotonicMs = 0;

  constructor(options: HomeFetchesOptions) {
    this.#options = options;
  }

  get isCutOff(): boolean {
    return this.cutOffSinceMs !== undefined;
  }

  /**
   * A heartbeat was answered. It ends a cut-off if no fetch was tried lately: without traffic nothing else would. If fetches still fail,
   * they count.
   */
  beat(roundTripMs: number): void {
    this.roundTripMs = roundTripMs;
    if (performance.now() >= this.#failedAtMonotonicMs + QUIET_MS) this.cutOffSinceMs = undefined;
  }

  get pools(): number {
    return this.#mine.size;
  }

  get units(): number {
    let units = 0;
    for (const pool of this.#mine) units += pool.units;
    return units;
  }

  /** For a request that found too few units. `key`: the pool's key. */
  async fetchFor(check: Check, key: string): Promise<Outcome> {
    const nowMonotonicMs = performance.now();
    const pool = this.#poolOf(check, key, nowMonotonicMs);
    if (pool.waiting === 0) {
      pool.waitingSinceMonotonicMs = nowMonotonicMs;
      pool.leastCost = check.cost;
    }
    pool.waiting += check.cost;
    pool.leastCost = Math.min(pool.leastCost, check.cost);
    // A fetch in flight does not include this request, but what it brings may still be enough.
    const fetching = pool.underWay ?? this.#start(pool, "no", 0);
    if (!this.isCutOff) return await fetching;
    // Nobody waits for a fetch that will probably fail.
    fetching.catch(() => {});
    pool.waiting = 0;
    return { kind: "away", cause: this.#cause };
  }

  /** The pool is low; no request waits for this. */
  fetchAhead(check: Check, key: string): void {
    const nowMonotonicMs = performance.now();
    const pool = this.#poolOf(check, key, nowMonotonicMs);
    if (pool.underWay === undefined && !this.#closed) this.#start(pool, "no", 0).catch(() => {});
  }

  /** The region's recent share of a limit's use; undefined if unknown. */
  async shareOf(check: Check, key: string): Promise<number | undefined> {
    const nowMonotonicMs = performance.now();
    const pool = this.#poolOf(check, key, nowMonotonicMs);
    if (nowMonotonicMs >= pool.shareReadMonotonicMs + SHARE_MS) {
      const { numbers } = await this.#options.regionStore.askForPool(key, askOf(check.plan, "no", -1));
      pool.share = numbers.share;
      pool.shareReadMonotonicMs = nowMonotonicMs;
    }
    return pool.share < 0 ? undefined : pool.share;
  }

  /** The charges to pools that have not been reported to the global store yet. */
  async notTold(charges: readonly Charged[]): Promise<Charged[]> {
    const pools = await Promise.all(
      charges.map(({ check: { key, plan } }) => this.#options.regionStore.askForPool(key, askOf(plan, "no", -1))),
    );
    return charges.filter(({ atMs }, i) => {
      const { nowMs, numbers } = pools[i]!;
      return atMs > numbers.askedAtMs && nowMs >= numbers.lastMs && nowMs < numbers.unitsEndMs;
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await Promise.all(
      [...this.#mine].map(async (pool) => {
        await pool.underWay?.catch(() => {});
        await this.#start(pool, "all", pool.seq).catch(() => {});
      }),
    );
  }

  #start(pool: Pool, givesBack: GivesBack, onlySeq: number): Promise<Outcome> {
    const fetching = this.#fetch(pool, givesBack, onlySeq).finally(() => {
      pool.underWay = undefined;
    });
    pool.underWay = fetching;
    return fetching;
  }

  async #fetch(pool: Pool, givesBack: GivesBack, onlySeq: number): Promise<Outcome> {
    const { regionStore, globalStore, region } = this.#options;
    // Requests of the same turn are fetched for together.
    await undefined;
    if (performance.now() < this.#awayUntilMonotonicMs) {
      pool.waiting = 0;
      return { kind: "away", cause: this.#cause };
    }
    const { plan, home } = pool;
    const asked = await regionStore.askForPool(pool.key, askOf(plan, givesBack, onlySeq));
    const sentMonotonicMs = performance.now();
    const waiting = waitingOf(pool, sentMonotonicMs);
    pool.waiting = 0;
    if (!asked.isMine) {
      if (onlySeq > 0) this.#forget(pool);
      else await this.#othersEnd(pool, asked);
      return { kind: "over" };
    }
    const { numbers } = asked;
    const facts = { waiting, roundTripMs: this.roundTripMs, left: pool.left, regions: this.#options.regions() };
    const size = sizeFetch(plan, asked, { ...facts, isLast: givesBack === "all" });
    const fetch: Fetch = {
      holder: `${region}.${numbers.name.toString(36)}`,
      seq: numbers.seq,
      used: numbers.used,
      held: numbers.told,
      want: size.want,
      need: size.need,
    };
    this.fetches++;
    try {
      const { verdicts, grants } = await globalStore.decide(requestOf(home, fetch));
      const nowMonotonicMs = performance.now();
      const roundTripMs = nowMonotonicMs - sentMonotonicMs;
      this.roundTripMs = roundTripMs;
      this.cutOffSinceMs = undefined;
      const grant = grants![0]!;
      const { resetAfterMs, remaining } = verdicts[0]!;
      pool.left = Math.max(0, remaining);
      const fill = fillOf({ plan, asked, size, fetch, grant, resetAfterMs, waiting, roundTripMs });
      const { isCounted } = await regionStore.fillPool(pool.key, fill);
      if (isCounted) this.#filled(pool, asked, grant.units, sentMonotonicMs + usableMs(grant));
      return { kind: "over" };
    } catch (cause) {
      return await this.#failed(pool, fetch.seq, cause);
    }
  }

  /** Another instance is fetching: wait until it is done, or its lease has expired. */
  async #othersEnd(pool: Pool, { numbers: { seq } }: PoolAsked): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      const { nowMs, numbers } = await this.#options.regionStore.askForPool(pool.key, askOf(pool.plan, "no", -1));
      if (numbers.seq !== seq || nowMs >= numbers.fetchingUntilMs) return;
    }
  }

  async #failed(pool: Pool, seq: number, cause: unknown): Promise<Outcome> {
    this.failedFetches++;
    this.cutOffSinceMs ??= Date.now();
    this.#cause = cause;
    this.#failedAtMonotonicMs = performance.now();
    this.#awayUntilMonotonicMs = this.#failedAtMonotonicMs + AWAY_MS;
    // Another instance may reach what this one cannot.
    await Promise.resolve(this.#options.regionStore.fillPool(pool.key, failedFill(seq))).catch(() => {});
    return { kind: "away", cause };
  }

  #filled(pool: Pool, { numbers }: PoolAsked, granted: number, unitsEndMonotonicMs: number): void {
    pool.seq = numbers.seq;
    pool.units = numbers.told + granted;
    pool.unitsEndMonotonicMs = unitsEndMonotonicMs;
    pool.renewAtMonotonicMs = unitsEndMonotonicMs - pool.plan.regionTermMs * RENEW_PART - this.roundTripMs;
    if (pool.units === 0) this.#forget(pool);
    // Beyond the bound, unused units are not given back: they are charged at their expiry.
    else if (this.#mine.size < MOST_KEYS || this.#mine.has(pool)) {
      this.#mine.add(pool);
      this.#watch();
    }
  }

  #forget(pool: Pool): void {
    this.#mine.delete(pool);
    pool.units = 0;
  }

  #watch(): void {
    if (this.#closed || this.#timer !== undefined) return;
    let nextMonotonicMs = Number.POSITIVE_INFINITY;
    for (const { renewAtMonotonicMs } of this.#mine) nextMonotonicMs = Math.min(nextMonotonicMs, renewAtMonotonicMs);
    if (nextMonotonicMs === Number.POSITIVE_INFINITY) return;
    const waitMs = Math.max(SHORTEST_TICK_MS, nextMonotonicMs - performance.now());
    this.#timer = setTimeout(() => this.#tick(), waitMs).unref();
  }

  /** A pool near its expiry was not renewed by a request: what it has may go back. */
  #tick(): void {
    const nowMonotonicMs = performance.now();
    this.#timer = undefined;
    let started = 0;
    for (const pool of this.#mine) {
      // The rest follow in a moment: the units of a flood of keys expire together.
      if (started >= MOST_PER_TICK) break;
      if (nowMonotonicMs >= pool.unitsEndMonotonicMs + pool.plan.regionTermMs) this.#forget(pool);
      else if (nowMonotonicMs >= pool.renewAtMonotonicMs && pool.underWay === undefined) {
        started++;
        this.#start(pool, "if-idle", pool.seq).catch(() => {});
      }
    }
    this.#watch();
  }

  #poolOf({ plan, key: homeKey }: Check, key: string, nowMonotonicMs: number): Pool {
    let pool = this.#byKey.get(key);
    if (pool === undefined) {
      if (this.#byKey.count >= MOST_KEYS) this.#byKey.evict(nowMonotonicMs);
      pool = {
        key,
        plan,
        home: homeCheck(plan, homeKey),
        waiting: 0,
        waitingSinceMonotonicMs: 0,
        leastCost: 1,
        underWay: undefined,
        seq: 0,
        unitsEndMonotonicMs: 0,
        renewAtMonotonicMs: 0,
        units: 0,
        left: 0,
        share: -1,
        shareReadMonotonicMs: Number.NEGATIVE_INFINITY,
        endsAtMs: 0,
        bytes: 0,
      };
      this.#byKey.set(key, pool, nowMonotonicMs);
    } else if (pool.plan !== plan) {
      pool.plan = plan;
      pool.home = homeCheck(plan, homeKey);
    }
    pool.endsAtMs = nowMonotonicMs + IDLE_MS;
    return pool;
  }
}

function askOf(
  { regionTermMs }: CheckPlan,
  givesBack: GivesBack,
  onlySeq: number,
): {
  name: number;
  onlySeq: number;
  givesBack: GivesBack;
  leaseMs: number;
} {
  const name = randomBytes(6).readUIntBE(0, 6);
  return { name, onlySeq, givesBack, leaseMs: Math.min(LONGEST_LEASE_MS, regionTermMs) };
}

function waitingOf({ waiting, waitingSinceMonotonicMs, leastCost }: Pool, nowMonotonicMs: number): Waiting {
  return { units: waiting, forMs: waiting === 0 ? 0 : nowMonotonicMs - waitingSinceMonotonicMs, leastCost };
}

const homePlans = new WeakMap<CheckPlan, CheckPlan>();

/** The plan of a global rule from the global store's point of view: regions are its holders. */
export function homePlan(plan: CheckPlan): CheckPlan {
  let home = homePlans.get(plan);
  if (home === undefined) {
    home = { ...plan, prefetchMs: plan.regionTermMs };
    homePlans.set(plan, home);
  }
  return home;
}

/** A check at cost 0 is always allowed and charges nothing: a fetch rides along with it. */
function homeCheck(plan: CheckPlan, key: string): Check {
  return { plan: homePlan(plan), key, cost: 0, live: -1 };
}

function requestOf(check: Check, fetch: Fetch): StoreRequest {
  const fetches = [fetch];
  return { checks: [check], charge: true, entryId: "", id: undefined, fingerprint: "", rulesVersion: 0, fetches };
}
