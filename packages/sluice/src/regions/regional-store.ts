/**
 * The store of an instance in a region: the region's own counters in the region's store, those of `scope: global` in the global store
 * ("home"), through the region's pools of units (`algorithms/pool.ts`).
 *
 * The life of a request with a global rule: each global check becomes a check of the region's pool, so that one script in the region's
 * store decides the whole request, all or nothing. If a pool has too few units and it is unknown whether there are more, nothing was
 * charged: units are fetched (`home-fetches.ts`), and the request is decided again. If the global store is away, the rule's failure policy
 * replaces its check: `local` counts in the region's store, at the region's recent share of the limit's use.
 */
import type { Verdict } from "../algorithms/model.js";
import { capacityOf } from "../algorithms/policy.js";
import { sharePolicy } from "../algorithms/share-policy.js";
import type { Check, CheckPlan } from "../check.js";
import { poolKey } from "../keys.js";
import type { InstanceCount } from "../store/instance-count.js";
import type {
  AskedKey,
  AskedPart,
  Charged,
  MaybePromise,
  RefundRequest,
  Store,
  StoreReply,
  StoreRequest,
} from "../store/store.js";
import { HomeFetches, homePlan, type RegionStats } from "./home-fetches.js";
import { asFirstAnswered, joinRecalled, joinRepeated, pass, refused } from "./regional-replies.js";

interface RegionalStoreOptions {
  readonly region: string;
  readonly regionStore: Store;
  readonly globalStore: Store;
  /** Whether a rule in force counts in the global store. */
  readonly isGlobal: (rule: string) => boolean;
}

/** How long a request waits for units that others may take before it. */
const PATIENCE_MS = 1_500;

/** A request in flight: which of its global checks a failure policy answers, and why. */
interface Attempt {
  readonly request: StoreRequest;
  readonly byPolicy: Map<number, Check>;
  readonly untilMonotonicMs: number;
  cause: unknown;
  hasWaited: boolean;
}

export class RegionalStore implements Store {
  readonly #region: Store;
  readonly #home: Store;
  readonly #options: RegionalStoreOptions;
  readonly #fetches: HomeFetches;
  #regions: InstanceCount | undefined;
  #hasGlobal = false;
  #homeReady: Promise<boolean> | undefined;
  #requests = 0;
  #waited = 0;
  #cutOffRequests = 0;
  readonly isRemote: boolean;
  readonly namesRequests: boolean;
  declare countInstances?: NonNullable<Store["countInstances"]>;
  declare shareReports?: NonNullable<Store["shareReports"]>;
  declare shareLimits?: NonNullable<Store["shareLimits"]>;
  declare stats?: NonNullable<Store["stats"]>;
  declare memory?: NonNullable<Store["memory"]>;
  declare blocks?: NonNullable<Store["blocks"]>;

  constructor(options: RegionalStoreOptions) {
    const { regionStore, globalStore } = options;
    this.#options = options;
    this.#region = regionStore;
    this.#home = globalStore;
    this.#fetches = new HomeFetches({ ...options, regions: () => this.regions });
    this.isRemote = regionStore.isRemote === true;
    this.namesRequests = regionStore.namesRequests === true;
    // Absent here if absent there.
    if (regionStore.countInstances !== undefined) this.countInstances = () => regionStore.countInstances!();
    if (regionStore.shareReports !== undefined) this.shareReports = (report) => regionStore.shareReports!(report);
    if (regionStore.shareLimits !== undefined) this.shareLimits = (request) => regionStore.shareLimits!(request);
    if (regionStore.stats !== undefined) this.stats = () => regionStore.stats!();
    if (regionStore.memory !== undefined) this.memory = () => regionStore.memory!();
    if (regionStore.blocks !== undefined) this.blocks = () => regionStore.blocks!();
  }

  /** Called once a rule is global. */
  countRegions(): void {
    this.#hasGlobal = true;
    this.#regions ??= this.#home.countInstances?.(this.#options.region, (roundTripMs) =>
      this.#fetches.beat(roundTripMs),
    );
  }

  /** How many regions share the global store, as far as is known; at least 1. */
  get regions(): number {
    return this.#regions?.known ?? 1;
  }

  regionStats(): RegionStats {
    const { fetches, failedFetches, units, pools, roundTripMs, isCutOff, cutOffSinceMs } = this.#fetches;
    const { region } = this.#options;
    const counts = { requests: this.#requests, waited: this.#waited, cutOffRequests: this.#cutOffRequests };
    return {
      region,
      regions: this.#regions?.known ?? 0,
      ...counts,
      fetches,
      failedFetches,
      units,
      pools,
      roundTripMs,
      isCutOff,
      ...(cutOffSinceMs !== undefined && { cutOffSinceMs }),
    };
  }

  decide(request: StoreRequest): MaybePromise<StoreReply> {
    const { checks } = request;
    let hasGlobal = false;
    for (let i = 0; i < checks.length; i++) {
      if (!isGlobal(checks[i]!)) continue;
      if (checks[i]!.charge === true) return this.#charge(request);
      hasGlobal = true;
    }
    if (!hasGlobal) return this.#decideHere(request);
    if (!request.charge) return this.#look(request);
    this.#requests++;
    const untilMonotonicMs = performance.now() + PATIENCE_MS;
    const attempt: Attempt = { request, byPolicy: new Map(), untilMonotonicMs, cause: undefined, hasWaited: false };
    // The first answer to an id is kept for a minute, so units must be there before the request is decided.
    if (request.id !== undefined) return this.#decideOnce(attempt);
    const reply = this.#region.decide(pooled(attempt));
    if (reply instanceof Promise) return reply.then((answered) => this.#answered(attempt, answered));
    return this.#answered(attempt, reply);
  }

  /** An id may stand for a decision from before an edit, when a rule of it was global. */
  #decideHere(request: StoreRequest): MaybePromise<StoreReply> {
    const reply = this.#region.decide(request);
    if (request.id === undefined) return reply;
    if (reply instanceof Promise) return reply.then((answered) => asFirstAnswered(answered));
    return asFirstAnswered(reply);
  }

  /** Finishes with this reply, or fetches what is lacking and asks again. */
  #answered(attempt: Attempt, reply: StoreReply): MaybePromise<StoreReply> {
    const lacking = this.#read(attempt, reply);
    if (lacking.length === 0) return this.#done(attempt, reply);
    return this.#fetch(attempt, lacking).then(async (hasMore) => {
      if (!hasMore) return this.#done(attempt, refused(reply, lacking));
      return this.#answered(attempt, await this.#region.decide(pooled(attempt)));
    });
  }

  async #decideOnce(attempt: Attempt): Promise<StoreReply> {
    const { request } = attempt;
    const look: Attempt = { ...attempt, request: { ...request, charge: false, id: undefined, fetches: undefined } };
    for (;;) {
      const lacking = this.#read(attempt, await this.#region.decide(pooled(look)));
      if (lacking.length === 0 || !(await this.#fetch(attempt, lacking))) break;
    }
    const reply = await this.#region.decide(pooled(attempt));
    if (reply.repeated !== undefined) return asFirstAnswered(reply);
    return this.#done(attempt, refused(reply, this.#read(attempt, reply)));
  }

  /**
   * Reads what the pools report along with their verdicts. Returns the indices of checks that lack units, if the request would pass
   * otherwise: in that case nothing of it was charged.
   */
  #read({ request, byPolicy }: Attempt, { verdicts }: StoreReply): number[] {
    const { checks } = request;
    const lacking: number[] = [];
    let isRefused = false;
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i]!;
      const found = verdicts[i]!;
      const isPooled = isGlobal(check) && !byPolicy.has(i);
      if (isPooled && found.resetAfterMs < 0) {
        found.resetAfterMs = -1 - found.resetAfterMs;
        if (found.allowed && check.cost > 0) this.#fetches.fetchAhead(check, poolKey(check.key));
      }
      if (found.allowed) continue;
      if (!isPooled || found.retryAfterMs > 0) {
        if (check.plan.mode === "enforce") isRefused = true;
      } else if (check.plan.mode === "enforce") lacking.push(i);
      else {
        // In the background: the request passes, and is counted once there are units.
        this.#fetches.fetchAhead(check, poolKey(check.key));
        pass(found);
      }
    }
    if (!isRefused) return lacking;
    for (const i of lacking) pass(verdicts[i]!);
    return [];
  }

  /** Whether to ask again: units may have arrived, or a policy answers. */
  async #fetch(attempt: Attempt, lacking: readonly number[]): Promise<boolean> {
    const { checks } = attempt.request;
    if (!attempt.hasWaited) this.#waited++;
    attempt.hasWaited = true;
    const outcomes = await Promise.all(lacking.map((i) => this.#fetches.fetchFor(checks[i]!, poolKey(checks[i]!.key))));
    let isAway = false;
    for (const [n, outcome] of outcomes.entries()) {
      if (outcome.kind !== "away") continue;
      isAway = true;
      await this.#fallBack(attempt, lacking[n]!, outcome.cause);
    }
    return isAway || performance.now() < attempt.untilMonotonicMs;
  }

  async #fallBack(attempt: Attempt, at: number, cause: unknown): Promise<void> {
    const check = attempt.request.checks[at]!;
    const { plan } = check;
    if (plan.onStoreFailure === "deny") throw cause;
    attempt.cause = cause;
    if (plan.onStoreFailure === "allow") {
      attempt.byPolicy.set(at, { ...pooledCheck(check), cost: 0 });
      return;
    }
    const share = (await this.#fetches.shareOf(check, poolKey(check.key))) ?? 1 / this.regions;
    const policy = sharePolicy(plan.policy, share);
    attempt.byPolicy.set(at, { ...check, plan: { ...plan, policy, prefetchMs: 0, regionTermMs: 0 } });
  }

  #done({ request, byPolicy, cause }: Attempt, reply: StoreReply): StoreReply {
    if (byPolicy.size === 0) return { ...reply, guarantee: "prefetched" };
    this.#cutOffRequests++;
    const isLocal = [...byPolicy.values()].some(({ plan }) => plan.onStoreFailure === "local");
    const checks = request.checks.map((check, i) => {
      const judged = byPolicy.get(i);
      return judged === undefined || judged.plan.onStoreFailure === "allow" ? check : judged;
    });
    for (const [i, { plan }] of byPolicy) {
      if (plan.onStoreFailure !== "allow") continue;
      reply.verdicts[i]!.remaining = capacityOf(plan.policy);
      reply.verdicts[i]!.resetAfterMs = 0;
    }
    return { ...reply, judged: { checks, degraded: isLocal ? "local" : "allow", cause } };
  }

  /** What the pool does not cover is looked up at home, where the units held by all regions count. */
  async #look(request: StoreRequest): Promise<StoreReply> {
    const attempt: Attempt = { request, byPolicy: new Map(), untilMonotonicMs: 0, cause: undefined, hasWaited: false };
    const reply = await this.#region.decide(pooled(attempt));
    if (reply.repeated !== undefined) return asFirstAnswered(reply);
    const short = request.checks.flatMap((check, i) => {
      const found = reply.verdicts[i]!;
      if (isGlobal(check)) found.resetAfterMs = found.resetAfterMs < 0 ? -1 - found.resetAfterMs : found.resetAfterMs;
      return isGlobal(check) && (found.remaining < Math.max(1, check.cost) || !found.allowed) ? [i] : [];
    });
    if (short.length === 0) return { ...reply, guarantee: "prefetched" };
    const checks = short.map((i) => ({ ...homeCheckOf(request.checks[i]!), cost: 0, live: -1 }));
    const found = await this.#home.decide({ ...request, id: undefined, fetches: undefined, checks });
    short.forEach((i, n) => {
      const { cost } = request.checks[i]!;
      const verdict = reply.verdicts[i]!;
      const atHome = found.verdicts[n]!;
      verdict.remaining = Math.max(0, verdict.remaining) + Math.max(0, atHome.remaining);
      verdict.resetAfterMs = atHome.resetAfterMs;
      if (cost > verdict.remaining) verdict.retryAfterMs = Math.max(1, verdict.retryAfterMs, atHome.retryAfterMs);
      else pass(verdict);
    });
    return { ...reply, guarantee: "prefetched" };
  }

  /** A charge is never refused, so it needs no unit: it is made at home. The other checks are decided as usual. */
  async #charge(request: StoreRequest): Promise<StoreReply> {
    const { checks } = request;
    const isCharged = (check: Check): boolean => isGlobal(check) && check.charge === true;
    const others = checks.filter((check) => !isCharged(check));
    const placeOf = (check: Check): number => others.indexOf(check);
    const rest = others.map((check) => ({ ...check, live: check.live < 0 ? -1 : placeOf(checks[check.live]!) }));
    const charges = checks.filter(isCharged).map(homeCheckOf);
    const atHome = await this.#home.decide({
      ...request,
      checks: charges,
      fetches: undefined,
      id: this.#idAtHome(request.id),
    });
    const here = rest.length === 0 ? undefined : await this.decide({ ...request, checks: rest, fetches: undefined });
    if (atHome.repeated !== undefined || here?.repeated !== undefined) {
      const first = { reply: atHome, checks: charges };
      return joinRepeated(here === undefined ? [first] : [first, { reply: here, checks: rest }], request);
    }
    let home = 0;
    let own = 0;
    const verdicts: Verdict[] = [];
    const timesMs: number[] = [];
    for (const check of checks) {
      const [reply, at] = isCharged(check) ? [atHome, home++] : [here!, own++];
      verdicts.push(reply.verdicts[at]!);
      timesMs.push(reply.timesMs?.[at] ?? reply.nowMs);
    }
    const { nowMs, guarantee, judged } = here ?? atHome;
    return { nowMs, guarantee, verdicts, timesMs, ...(judged && { judged: { ...judged, checks } }) };
  }

  /** Charges of global rules are remembered at home. While home is away, what the region remembers can be given back. */
  async recall(id: string): Promise<StoreReply | undefined> {
    const atHomeToo = async () => (this.#hasGlobal ? await this.#home.recall(this.#idAtHome(id)!) : undefined);
    const [here, atHome] = await Promise.allSettled([this.#region.recall(id), atHomeToo()]);
    if (here.status === "rejected") throw here.reason;
    if (atHome.status === "rejected" && here.value === undefined) throw atHome.reason;
    const replies = [atHome.status === "fulfilled" ? atHome.value : undefined, here.value];
    return joinRecalled(replies.flatMap((reply) => reply ?? []));
  }

  /** The same id in two regions is two requests. */
  #idAtHome(id: string | undefined): string | undefined {
    return id === undefined ? undefined : `${this.#options.region}:${id}`;
  }

  /** A unit goes back into the pool if its use was not reported to the global store; a charge is given back at home. */
  async refund({ charges, id }: RefundRequest): Promise<boolean> {
    const atHome: Charged[] = [];
    const here: Charged[] = [];
    const pools: Charged[] = [];
    for (const charged of charges) {
      const { check } = charged;
      if (!isGlobal(check)) here.push(charged);
      else if (check.charge === true) atHome.push({ ...charged, check: homeCheckOf(check) });
      else pools.push({ ...charged, check: pooledCheck(check) });
    }
    const given = await this.#refundHere(here, pools, id);
    if (atHome.length === 0) return given;
    return (await this.#home.refund({ charges: atHome, id: this.#idAtHome(id) })) || given;
  }

  /** If nothing can be given back, nothing is done: the id still stands for its charge. */
  async #refundHere(here: readonly Charged[], pools: readonly Charged[], id: string | undefined): Promise<boolean> {
    const open = await this.#fetches.notTold(pools);
    const charges = [...here, ...open];
    if (charges.length === 0 || !(await this.#region.refund({ charges, id }))) return false;
    // A fetch that was sent meanwhile may have reported it first. Then it is uncertain whether anything was given back.
    return here.length > 0 || (await this.#fetches.notTold(open)).length > 0;
  }

  async giveBack(checks: readonly Check[], asked?: readonly AskedPart[]): Promise<boolean> {
    const here = checks.filter((check) => !isGlobal(check));
    const atHome = checks.filter(isGlobal).map(homeCheckOf);
    const given = here.length > 0 && (await this.#region.giveBack(here, asked));
    return (atHome.length > 0 && (await this.#home.giveBack(atHome, asked))) || given;
  }

  release(...args: Parameters<Store["release"]>): ReturnType<Store["release"]> {
    return this.#region.release(...args);
  }

  renew(...args: Parameters<Store["renew"]>): ReturnType<Store["renew"]> {
    return this.#region.renew(...args);
  }

  block(...args: Parameters<Store["block"]>): ReturnType<Store["block"]> {
    return this.#region.block(...args);
  }

  settle(...args: Parameters<Store["settle"]>): ReturnType<Store["settle"]> {
    return this.#region.settle(...args);
  }

  extend(...args: Parameters<Store["extend"]>): ReturnType<Store["extend"]> {
    return this.#region.extend(...args);
  }

  holdState(...args: Parameters<Store["holdState"]>): ReturnType<Store["holdState"]> {
    return this.#region.holdState(...args);
  }

  learn(...args: Parameters<Store["learn"]>): ReturnType<Store["learn"]> {
    return this.#region.learn(...args);
  }

  async inspect(checks: readonly Check[]): Promise<readonly Readonly<Record<string, number>>[]> {
    const states = checks.map((check) =>
      isGlobal(check) ? this.#home.inspect([homeCheckOf(check)]) : this.#region.inspect([check]),
    );
    return (await Promise.all(states)).map(([state]) => state!);
  }

  /** The counter starts over at home. Units held by regions stay usable, and stay counted. */
  async reset(keys: readonly string[], asked?: AskedKey): Promise<void> {
    if (asked !== undefined && this.#options.isGlobal(asked.rule)) await this.#home.reset(keys, asked);
    await this.#region.reset(keys, asked);
  }

  askForPool(...args: Parameters<Store["askForPool"]>): ReturnType<Store["askForPool"]> {
    return this.#region.askForPool(...args);
  }

  fillPool(...args: Parameters<Store["fillPool"]>): ReturnType<Store["fillPool"]> {
    return this.#region.fillPool(...args);
  }

  /**
   * Whether the region's store answers. The first call also connects to home, so that the first fetch takes one round trip without a
   * handshake; whether home answers does not matter.
   */
  async ready(): Promise<boolean> {
    this.#homeReady ??= this.#regions === undefined ? undefined : Promise.resolve(this.#home.ready());
    const [isReady] = await Promise.all([this.#region.ready(), this.#homeReady]);
    return isReady;
  }

  get whyNotReady(): unknown {
    return this.#region.whyNotReady;
  }

  async close(): Promise<void> {
    await this.#fetches.close();
    await this.#regions?.stop();
    await this.#region.close();
    await this.#home.close();
  }
}

function isGlobal({ plan }: Check): boolean {
  return plan.regionTermMs > 0;
}

const poolPlans = new WeakMap<CheckPlan, CheckPlan>();

function pooledCheck(check: Check): Check {
  const { plan, key } = check;
  let pool = poolPlans.get(plan);
  if (pool === undefined) {
    const { policy } = plan;
    pool = { ...plan, policy: { stored: "pool", limit: policy.limit, largestCost: capacityOf(policy) } };
    poolPlans.set(plan, pool);
  }
  return { ...check, plan: pool, key: poolKey(key) };
}

function homeCheckOf(check: Check): Check {
  return { ...check, plan: homePlan(check.plan) };
}

/** The request as sent to the region's store. */
function pooled({ request, byPolicy }: Attempt): StoreRequest {
  const { fetches } = request;
  const checks = request.checks.map((check, i) => byPolicy.get(i) ?? (isGlobal(check) ? pooledCheck(check) : check));
  if (fetches === undefined || byPolicy.size === 0) return { ...request, checks };
  return { ...request, checks, fetches: fetches.map((fetch, i) => (byPolicy.has(i) ? undefined : fetch)) };
}
