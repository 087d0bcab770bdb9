/**
 * Decides requests in this process, from prefetched units, and fetches them.
 *
 * The life of a request under rules with prefetch: if every one of its rules has units in hand, it is decided here. Otherwise one script
 * decides and charges it as without prefetch, and the fetches of its rules ride along; what the rules have in hand stays there. Requests
 * that arrive while such a fetch is in flight wait for its units, so that a burst is one call. Requests with an id, charges and looks
 * always go to the store: only the store knows ids, and units in hand are for requests that pass.
 *
 * Unused units go back shortly before their expiry (one timer, only while anything is held), and at `close`. While the store is away, units
 * are used until they expire on this process's monotonic clock; then the failure policy answers.
 */
import { randomBytes } from "node:crypto";
import type { Fetch } from "../algorithms/grants.js";
import { type Verdict, verdict } from "../algorithms/model.js";
import { owedInFront } from "../algorithms/token-bucket.js";
import type { Check, CheckPlan } from "../check.js";
import type { SoleDecider, SoleRequest } from "../sole-request.js";
import { ExpiringMap } from "../store/expiring-map.js";
import type { MaybePromise, Store, StoreReply, StoreRequest } from "../store/store.js";
import { type FetchEnd, HeldUnits, LONGEST_REFUSAL_MS, type Refusal, type Uses } from "./held-units.js";
import { type ReplyFromHand, SoleReplyFromHand } from "./reply-from-hand.js";
import { TurnRequests } from "./turn-requests.js";

/** Bound on remembered keys: the busy keys of a process are few. */
const MOST_KEYS = 16_384;
const SHORTEST_TICK_MS = 2;
/**
 * The most fetches that one request waits for: one that was in flight, and one that asks for its units too. More only if a request has
 * several rules.
 */
const MOST_WAITS = 3;

/** Counts since the start. */
export interface PrefetchStats {
  /** Decisions from units in hand. */
  readonly decided: number;
  /** Fetches, each along with a request or on its own. */
  readonly fetches: number;
  /** Units in hand now, and of how many keys. */
  readonly units: number;
  readonly keys: number;
}

/** A fetch that rides along with a request, attached to the check at index `at`. */
interface Rider {
  readonly held: HeldUnits;
  readonly plan: CheckPlan;
  readonly cost: number;
  readonly at: number;
  /** Settles, and gives back what is in hand. */
  readonly isLast: boolean;
}

/** A fetch in flight, and the uses that it settles. */
interface Sent {
  readonly held: HeldUnits;
  readonly plan: CheckPlan;
  readonly cost: number;
  readonly fetch: Fetch;
  readonly uses: Uses;
  readonly at: number;
}

export class Prefetch implements SoleDecider {
  readonly #store: Store;
  readonly #turnRequests: TurnRequests;
  readonly #byKey = new ExpiringMap<HeldUnits>();
  /** Those with units in hand, or uses to settle. */
  readonly #active = new Set<HeldUnits>();
  readonly #name = randomBytes(6).toString("base64url");
  #holders = 0;
  #timer: NodeJS.Timeout | undefined;
  #tickMs = Number.POSITIVE_INFINITY;
  #closed = false;
  #decided = 0;
  #fetches = 0;

  constructor(store: Store) {
    this.#store = store;
    this.#turnRequests = new TurnRequests(store);
  }

  /** `request` must have a rule with prefetch. */
  decide(request: StoreRequest): MaybePromise<StoreReply> {
    if (!request.charge || request.id !== undefined || request.holdMs !== undefined) return this.#store.decide(request);
    const nowMonotonicMs = performance.now();
    return this.#fromHand(request, nowMonotonicMs) ?? this.#fromStore(request, nowMonotonicMs);
  }

  /** The same for a request with one check and nothing else, without allocating lists. Undefined if its key has too few units in hand. */
  decideSole({ check }: SoleRequest): SoleReplyFromHand | undefined {
    const { plan, key, cost } = check;
    const held = this.#byKey.get(key);
    if (held === undefined || held.plan !== plan || cost === 0) return undefined;
    const nowMonotonicMs = performance.now();
    if (!held.has(cost, nowMonotonicMs)) return undefined;
    const reply = new SoleReplyFromHand(held, this.#use(held, cost, nowMonotonicMs));
    this.#decided++;
    return reply;
  }

  stats(): PrefetchStats {
    let units = 0;
    for (const held of this.#active) units += held.units;
    return { decided: this.#decided, fetches: this.#fetches, units, keys: this.#active.size };
  }

  /**
   * Call before counters are reset. Returns what to call once the store has done it: earlier uses that are not settled yet are then
   * forgotten with the counters. A reset that failed must forget nothing, or as many later requests would pass uncharged.
   */
  beforeReset(keys: readonly string[]): () => void {
    const forgets = keys.map((key) => this.#byKey.get(key)?.beforeReset());
    return () => {
      for (const forget of forgets) forget?.();
    };
  }

  /** Settles everything, and gives back what is in hand. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await Promise.all([...this.#active].map((held) => this.#giveBack(held)));
  }

  #fromHand({ checks }: StoreRequest, nowMonotonicMs: number): StoreReply | undefined {
    const { length } = checks;
    for (let i = 0; i < length; i++) {
      const { plan, key, cost, charge } = checks[i]!;
      if (plan.prefetchMs === 0 || cost === 0 || charge === true) return undefined;
      const held = this.#byKey.get(key);
      if (held === undefined || held.plan !== plan || !held.has(cost, nowMonotonicMs)) return undefined;
    }
    const verdicts = new Array<Verdict>(length);
    const uses = new Array<Uses>(length);
    let nowMs = 0;
    for (let i = 0; i < length; i++) {
      const { key, cost } = checks[i]!;
      const held = this.#byKey.get(key)!;
      verdicts[i] = this.#use(held, cost, nowMonotonicMs);
      uses[i] = held.uses;
      nowMs = held.nowMs;
    }
    this.#decided++;
    const reply: ReplyFromHand = { nowMs, verdicts, guarantee: "prefetched", uses };
    return reply;
  }

  /** Call after `has`. A fetch ahead that this triggers is sent later: until then, the uses belong to the next fetch. */
  #use(held: HeldUnits, cost: number, nowMonotonicMs: number): Verdict {
    held.use(cost);
    if (held.needsFetchAhead(nowMonotonicMs)) this.#fetchAhead(held);
    const found = verdict(true, held.units, 0, held.resetAfterMs, undefined);
    found.charged = true;
    return found;
  }

  #fromStore(request: StoreRequest, nowMonotonicMs: number, waits = 0): MaybePromise<StoreReply> {
    let waitFor: Promise<FetchEnd> | undefined;
    let isCounted = false;
    for (const check of request.checks) {
      const { plan, cost, charge } = check;
      if (plan.prefetchMs === 0 || charge === true) continue;
      const held = this.#heldFor(check, nowMonotonicMs);
      held.ask(plan, nowMonotonicMs);
      if (held.has(cost, nowMonotonicMs)) continue;
      if (nowMonotonicMs < held.refusedUntilMonotonicMs) {
        held.arrive(cost);
        return this.#store.decide(request);
      }
      if (!held.isWanting || waits === MOST_WAITS) continue;
      if (held.isBoarding) {
        held.claimed += cost;
        isCounted = cost === 1;
      }
      waitFor ??= held.underWay;
    }
    if (waitFor === undefined) return this.#send(request, nowMonotonicMs);
    return waitFor.then((end) => {
      const laterMonotonicMs = performance.now();
      const reply = this.#fromHand(request, laterMonotonicMs);
      if (reply !== undefined) return reply;
      if (end.failure !== undefined) throw end.failure;
      const refused = isCounted && request.checks.length === 1 ? this.#refusedBy(end, request.checks[0]!) : undefined;
      return refused ?? this.#fromStore(request, laterMonotonicMs, waits + 1);
    });
  }

  /** The store was asked for a unit for this request, among others, and had none. */
  #refusedBy({ refusals }: FetchEnd, { key, cost }: Check): StoreReply | undefined {
    const held = this.#byKey.get(key);
    const refusal = held && refusals?.get(held);
    if (refusal === undefined) return undefined;
    held!.arrive(cost);
    const { nowMs, retryAfterMs, resetAfterMs } = refusal;
    return { nowMs, verdicts: [verdict(false, 0, retryAfterMs, resetAfterMs, "limit")], guarantee: "prefetched" };
  }

  /** Asks the store, and lets each rule's fetch ride along. */
  #send(request: StoreRequest, nowMonotonicMs: number): MaybePromise<StoreReply> {
    const { checks } = request;
    let riders: Rider[] | undefined;
    for (let i = 0; i < checks.length; i++) {
      const { plan, cost, charge } = checks[i]!;
      if (plan.prefetchMs === 0 || charge === true) continue;
      const held = this.#heldFor(checks[i]!, nowMonotonicMs);
      held.arrive(cost);
      if (held.underWay !== undefined || !held.needsFetch(cost, nowMonotonicMs)) continue;
      riders ??= [];
      riders.push({ held, plan, cost, at: i, isLast: false });
    }
    return riders === undefined ? this.#withoutUnits(request) : this.#ride(request, riders);
  }

  /**
   * If no units can be had (a cold key that becomes hot, a store whose round trip exceeds the prefetch time), requests of one turn become
   * one check for the store: one by one they would cost it more than without prefetch, and a busy store would never become fast again.
   */
  #withoutUnits(request: StoreRequest): MaybePromise<StoreReply> {
    if (!TurnRequests.canJoin(request)) return this.#store.decide(request);
    return this.#turnRequests.decide(this.#byKey.get(request.checks[0]!.key)!, request);
  }

  /**
   * Deferred, so that the request that finds few units left does not wait for the sending. A caller that never lets the event loop turn,
   * because every answer is synchronous, would first use up the rest; in that case it is sent now, and its answer is there when the loop
   * turns.
   */
  #fetchAhead(held: HeldUnits): void {
    if (held.isDue) {
      if (held.underWay === undefined && held.units <= held.low / 2) this.#rideAlone(held, false).catch(() => {});
      return;
    }
    held.isDue = true;
    setImmediate(() => {
      held.isDue = false;
      const nowMonotonicMs = performance.now();
      if (this.#closed || held.underWay !== undefined || !held.needsFetchAhead(nowMonotonicMs)) return;
      this.#rideAlone(held, false).catch(() => {});
    });
  }

  async #giveBack(held: HeldUnits): Promise<void> {
    // Requests that wait for units may fetch once more; of two fetches in flight, the later would take back what the earlier brings.
    while (held.underWay !== undefined) await held.underWay;
    // What the store does not hear about expires there by itself.
    if (held.isOutstanding) await this.#rideAlone(held, true).catch(() => {});
  }

  /** A check at cost 0 is always allowed and charges nothing. */
  #rideAlone(held: HeldUnits, isLast: boolean): Promise<StoreReply> {
    const { plan, key } = held;
    const check: Check = { plan, key, cost: 0, live: -1 };
    const request = { checks: [check], charge: true, entryId: "", id: undefined, fingerprint: "", rulesVersion: 0 };
    return this.#ride(request, [{ held, plan, cost: 0, at: 0, isLast }]);
  }

  /** Sends the request with its fetches, after other requests have added what they need to them. */
  #ride(request: StoreRequest, riders: readonly Rider[]): Promise<StoreReply> {
    let sent: readonly Sent[] = [];
    let sentMonotonicMs = 0;
    const replied = this.#untilSent(request, riders).then(() => {
      sentMonotonicMs = performance.now();
      const fetches = new Array<Fetch | undefined>(request.checks.length);
      sent = riders.map((rider) => this.#board(rider, fetches, sentMonotonicMs));
      this.#fetches++;
      return this.#store.decide({ ...request, fetches });
    });
    const ended = replied.then(
      (reply) => this.#answered(sent, reply, sentMonotonicMs),
      (failure) => {
        const end = this.#answered(sent, undefined, sentMonotonicMs);
        // With several rules, another rule's store may have been the one that did not answer.
        return request.checks.length === 1 ? { failure } : end;
      },
    );
    for (const { held } of riders) {
      held.underWay = ended;
      held.isWanting = true;
      held.isBoarding = true;
      held.claimed = 0;
    }
    // In this order: the requests that wait for the reply must find the units in hand.
    return ended.then(() => replied);
  }

  /**
   * Resolves at the end of this turn; if units are scarce, at the end of the pause. A request under several rules does not wait for one of
   * them.
   */
  #untilSent({ checks }: StoreRequest, riders: readonly Rider[]): Promise<void> {
    const { held, isLast } = riders[0]!;
    const pauseMs = checks.length > 1 || isLast ? 0 : held.pausesUntilMonotonicMs - performance.now();
    return pauseMs > 0 ? new Promise((resolve) => setTimeout(resolve, pauseMs)) : Promise.resolve();
  }

  #board({ held, plan, cost, at, isLast }: Rider, fetches: (Fetch | undefined)[], sentMonotonicMs: number): Sent {
    const fetch = isLast ? held.lastFetch() : held.nextFetch(cost, sentMonotonicMs);
    held.isWanting = fetch.want > 0;
    held.isBoarding = false;
    fetches[at] = fetch;
    return { held, plan, cost, fetch, uses: held.sent(fetch), at };
  }

  #answered(sent: readonly Sent[], reply: StoreReply | undefined, sentMonotonicMs: number): FetchEnd {
    const nowMonotonicMs = performance.now();
    let refusals: Map<HeldUnits, Refusal> | undefined;
    for (const { held, plan, cost, fetch, uses, at } of sent) {
      held.underWay = undefined;
      held.isWanting = false;
      const found = reply?.verdicts[at];
      held.refusedUntilMonotonicMs =
        found === undefined || found.allowed ? 0 : sentMonotonicMs + Math.min(found.retryAfterMs, LONGEST_REFUSAL_MS);
      const grant = reply?.grants?.[at];
      if (reply === undefined || found === undefined || grant === undefined) {
        // Lost, or not processed: the next fetch settles these uses along with its own.
        uses.movedTo = held.uses;
      } else {
        held.resetAfterMs = found.resetAfterMs;
        held.nowMs = reply.timesMs?.[at] ?? reply.nowMs;
        // If it is later, the units had already expired in the store: nothing was charged at this instant that a refund could name.
        if (held.nowMs < held.settledUntilMs) uses.atMs = held.nowMs;
        // A reset within the term may be that of units in hand rather than the bucket's. What the request itself was charged comes after
        // the uses.
        if (found.charged || found.resetAfterMs > plan.prefetchMs)
          uses.owed = owedInFront(plan.policy, found, found.charged ? cost : 0);
        held.settledUntilMs = held.nowMs + grant.lifeMs;
        held.granted(fetch, grant, { plan, sentMonotonicMs, nowMonotonicMs });
        const { units, retryAfterMs = 0 } = grant;
        if (units < (fetch.need ?? 0) && retryAfterMs > 0) {
          refusals ??= new Map();
          refusals.set(held, { nowMs: held.nowMs, retryAfterMs, resetAfterMs: Math.max(0, found.resetAfterMs) });
        }
      }
      this.#watch(held);
    }
    return refusals === undefined ? {} : { refusals };
  }

  #heldFor({ key, plan }: Check, nowMonotonicMs: number): HeldUnits {
    let held = this.#byKey.get(key);
    if (held === undefined) {
      if (this.#byKey.count >= MOST_KEYS) this.#byKey.evict(nowMonotonicMs);
      // A new name: a key that was forgotten and returns has nothing to do with what it held before.
      held = new HeldUnits(key, plan, `${this.#name}${(this.#holders++).toString(36)}`, nowMonotonicMs);
      this.#byKey.set(key, held, nowMonotonicMs);
    }
    return held;
  }

  /** Ensures that what is held goes back. */
  #watch(held: HeldUnits): void {
    if (!held.isOutstanding) return;
    this.#active.add(held);
    if (this.#closed) return;
    const tickMs = Math.max(SHORTEST_TICK_MS, held.plan.prefetchMs / 4);
    if (this.#timer !== undefined && tickMs >= this.#tickMs) return;
    clearTimeout(this.#timer);
    this.#tickMs = tickMs;
    this.#timer = setTimeout(() => this.#tick(), tickMs).unref();
  }

  /** Units in hand near their expiry are not in use: a busy key renews its own. */
  #tick(): void {
    const nowMonotonicMs = performance.now();
    this.#timer = undefined;
    this.#tickMs = Number.POSITIVE_INFINITY;
    for (const held of this.#active) {
      if (!held.isOutstanding) this.#active.delete(held);
      else {
        const { endsAtMonotonicMs, plan, underWay } = held;
        if (nowMonotonicMs >= endsAtMonotonicMs + plan.prefetchMs) held.giveUp();
        else if (nowMonotonicMs >= endsAtMonotonicMs - plan.prefetchMs / 4 && underWay === undefined)
          void this.#giveBack(held);
        this.#watch(held);
      }
    }
  }
}
