/**
 * Decides requests in this process, from units that were fetched ahead, and fetches them.
 *
 * The life of a request under rules with prefetch: every one of its rules has units in hand: decided here. Otherwise one script
 * decides and charges it as it would without prefetch, and brings along what the rules want to hold; what they have in hand stays
 * there. A request that finds such a fetch under way waits for it, once. Requests with an id, charges and looks always go to the
 * store: only the store knows ids, and units in hand are for requests that pass.
 *
 * Units that nobody uses go back shortly before their end (one timer, only while anything is held), and at `close`. With the store
 * away, units are used until their end, on this process's monotonic clock; then the failure policy answers.
 */
import { randomBytes } from "node:crypto";
import type { Fetch } from "../algorithms/grants.js";
import { type Verdict, verdict } from "../algorithms/model.js";
import type { Check, CheckPlan } from "../check.js";
import { ExpiringMap } from "../store/expiring-map.js";
import type { Charged, MaybePromise, Store, StoreReply, StoreRequest } from "../store/store.js";
import { HeldUnits, type Uses } from "./held-units.js";

/** Keys that are remembered: the busiest of a process are few. */
const MOST_KEYS = 16_384;
const SHORTEST_TICK_MS = 2;

/** Figures since the start. */
export interface PrefetchStats {
  /** Decisions from units in hand. */
  readonly decided: number;
  /** Fetches, each beside a request or on its own. */
  readonly fetches: number;
  /** Units in hand now, and of how many keys. */
  readonly units: number;
  readonly keys: number;
}

/** The reply to a request that was decided here, with the uses that each check's cost belongs to. */
interface ReplyFromHand extends StoreReply {
  readonly uses: readonly Uses[];
}

/** The uses that some were settled with, once that is known. With neither number nor time, they were given up. */
async function settlementOf(uses: Uses): Promise<Uses> {
  let last = uses;
  for (;;) {
    while (last.movedTo !== undefined) last = last.movedTo;
    if (last.seq === 0 || last.atMs > 0 || last.held.underWay === undefined) return last;
    await last.held.underWay;
  }
}

export function isFromHand(reply: StoreReply): reply is ReplyFromHand {
  return reply.guarantee === "prefetched";
}

/** A fetch on its way: beside the check at place `at`. */
interface Sending {
  readonly held: HeldUnits;
  readonly plan: CheckPlan;
  readonly fetch: Fetch;
  readonly uses: Uses;
  readonly at: number;
}

export class Prefetch {
  readonly #store: Store;
  readonly #byKey = new ExpiringMap<HeldUnits>();
  /** Those with units in hand, or uses to settle. */
  readonly #active = new Set<HeldUnits>();
  readonly #name = randomBytes(6).toString("base64url");
  #holders = 0;
  #timer: NodeJS.Timeout | undefined;
  #tickMs = Number.POSITIVE_INFINITY;
  #decided = 0;
  #fetches = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** `request` has a rule with prefetch. */
  decide(request: StoreRequest): MaybePromise<StoreReply> {
    if (!request.charge || request.id !== undefined) return this.#store.decide(request);
    const nowMonotonicMs = performance.now();
    return this.#fromHand(request, nowMonotonicMs) ?? this.#fromStore(request, nowMonotonicMs);
  }

  stats(): PrefetchStats {
    let units = 0;
    for (const held of this.#active) units += held.units;
    return { decided: this.#decided, fetches: this.#fetches, units, keys: this.#active.size };
  }

  /** Before counters are reset: what was used of them and not settled yet is forgotten with them. */
  forget(keys: readonly string[]): void {
    for (const key of keys) this.#byKey.get(key)?.forgetUses();
  }

  /** Settles everything, and gives back what is in hand. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await Promise.all([...this.#active].map(({ underWay }) => underWay));
    await Promise.all([...this.#active].map((held) => this.#giveBack(held)));
  }

  /**
   * Gives back what a decision from units in hand used: into the hand if it is not settled yet, else to the store, from the
   * entries that were charged for it.
   */
  async refund({ uses }: ReplyFromHand, checks: readonly Check[]): Promise<boolean> {
    const charges: Charged[] = [];
    let isInHand = false;
    for (let i = 0; i < checks.length; i++) {
      const settled = await settlementOf(uses[i]!);
      // Of a fetch without an answer: the store may have charged it, so the unit may not be used again. It is settled with the next one.
      if (settled.seq === 0 && settled !== uses[i]) continue;
      if (settled.seq === 0) {
        settled.held.unuse(checks[i]!.cost);
        isInHand = true;
      } else if (settled.atMs > 0) charges.push(...this.#chargesOf(settled, checks[i]!));
    }
    return charges.length === 0 ? isInHand : await this.#store.refund({ charges, id: undefined });
  }

  #chargesOf(uses: Uses, check: Check): Charged[] {
    const name = `${uses.held.holder}.${uses.seq}`;
    if (check.plan.policy.stored !== "rolling-window") return [{ check, atMs: uses.atMs, entryId: name }];
    // Entries of a sorted set have names; those of one settlement are alike, so any that is left may go.
    return Array.from({ length: check.cost }, () => {
      const nth = ++uses.refunded;
      return { check: { ...check, cost: 1 }, atMs: uses.atMs, entryId: nth === 1 ? name : `${name}:${nth}` };
    });
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
      held.use(cost);
      const found = verdict(true, held.units, 0, held.resetAfterMs, undefined);
      found.charged = true;
      verdicts[i] = found;
      uses[i] = held.uses;
      nowMs = held.nowMs;
      if (held.needsFetchAhead(nowMonotonicMs) && held.underWay === undefined) this.#fetchAhead(held, nowMonotonicMs);
    }
    this.#decided++;
    const reply: ReplyFromHand = { nowMs, verdicts, guarantee: "prefetched", uses };
    return reply;
  }

  #fromStore(request: StoreRequest, nowMonotonicMs: number): MaybePromise<StoreReply> {
    const { checks } = request;
    let waitFor: Promise<void> | undefined;
    for (const check of checks) {
      if (check.plan.prefetchMs === 0 || check.charge === true) continue;
      const held = this.#heldFor(check, nowMonotonicMs);
      held.ask(check.plan, nowMonotonicMs);
      if (held.isWanting && !held.has(check.cost, nowMonotonicMs)) waitFor ??= held.underWay;
    }
    if (waitFor === undefined) return this.#send(request, nowMonotonicMs);
    return waitFor.then(() => {
      const laterMonotonicMs = performance.now();
      return this.#fromHand(request, laterMonotonicMs) ?? this.#send(request, laterMonotonicMs);
    });
  }

  /** Asks the store, and lets each rule's fetch ride along. */
  #send(request: StoreRequest, nowMonotonicMs: number): MaybePromise<StoreReply> {
    const { checks } = request;
    let fetches: (Fetch | undefined)[] | undefined;
    let sending: Sending[] | undefined;
    for (let i = 0; i < checks.length; i++) {
      const { plan, key, cost, charge } = checks[i]!;
      if (plan.prefetchMs === 0 || charge === true) continue;
      const held = this.#byKey.get(key);
      if (held === undefined) continue;
      held.arrive(cost);
      const fetch = held.underWay === undefined ? held.nextFetch(cost, nowMonotonicMs) : undefined;
      if (fetch === undefined) continue;
      fetches ??= new Array<Fetch | undefined>(checks.length);
      sending ??= [];
      fetches[i] = fetch;
      sending.push({ held, plan, fetch, uses: held.sent(fetch), at: i });
    }
    if (fetches === undefined || sending === undefined) return this.#store.decide(request);
    return this.#await(sending, this.#store.decide({ ...request, fetches }), nowMonotonicMs);
  }

  #fetchAhead(held: HeldUnits, nowMonotonicMs: number): void {
    const fetch = held.nextFetch(0, nowMonotonicMs);
    if (fetch !== undefined) this.#sendAlone(held, fetch, nowMonotonicMs);
  }

  async #giveBack(held: HeldUnits): Promise<void> {
    if (!held.isOutstanding) return;
    this.#sendAlone(held, held.lastFetch(), performance.now());
    await held.underWay;
  }

  /** A check at cost 0 is always allowed, and charges nothing. */
  #sendAlone(held: HeldUnits, fetch: Fetch, nowMonotonicMs: number): void {
    const check: Check = { plan: held.plan, key: held.key, cost: 0, live: -1 };
    const rest = { charge: true, entryId: "", id: undefined, fingerprint: "", rulesVersion: 0 };
    const sending = [{ held, plan: held.plan, fetch, uses: held.sent(fetch), at: 0 }];
    const reply = this.#store.decide({ ...rest, checks: [check], fetches: [fetch] });
    const answered = this.#await(sending, reply, nowMonotonicMs);
    // The next request that finds no units learns what is wrong.
    if (answered instanceof Promise) answered.catch(() => {});
  }

  #await(
    sending: readonly Sending[],
    reply: MaybePromise<StoreReply>,
    sentMonotonicMs: number,
  ): MaybePromise<StoreReply> {
    if (!(reply instanceof Promise)) {
      this.#answered(sending, reply, sentMonotonicMs);
      return reply;
    }
    this.#fetches++;
    const ended = reply.then(
      (answer) => this.#answered(sending, answer, sentMonotonicMs),
      () => this.#answered(sending, undefined, sentMonotonicMs),
    );
    for (const { held, fetch } of sending) {
      held.underWay = ended;
      held.isWanting = fetch.want > 0;
      this.#watch(held);
    }
    // In this order: who waits for the reply finds the units in hand.
    return ended.then(() => reply);
  }

  #answered(sending: readonly Sending[], reply: StoreReply | undefined, sentMonotonicMs: number): void {
    const nowMonotonicMs = performance.now();
    for (const { held, plan, fetch, uses, at } of sending) {
      held.underWay = undefined;
      held.isWanting = false;
      const grant = reply?.grants?.[at];
      if (reply === undefined || grant === undefined) {
        // Lost, or not looked at: the next fetch settles these uses with its own.
        uses.movedTo = held.uses;
        continue;
      }
      held.resetAfterMs = reply.verdicts[at]!.resetAfterMs;
      held.nowMs = reply.timesMs?.[at] ?? reply.nowMs;
      uses.atMs = held.nowMs;
      held.granted(fetch, grant, { plan, sentMonotonicMs, nowMonotonicMs });
      this.#watch(held);
    }
  }

  #heldFor({ key, plan }: Check, nowMonotonicMs: number): HeldUnits {
    let held = this.#byKey.get(key);
    if (held === undefined) {
      if (this.#byKey.count >= MOST_KEYS) this.#byKey.evict(nowMonotonicMs);
      // A name of its own: a key that was forgotten and comes back has nothing to do with what it held then.
      held = new HeldUnits(key, plan, `${this.#name}${(this.#holders++).toString(36)}`, nowMonotonicMs);
      this.#byKey.set(key, held, nowMonotonicMs);
    }
    return held;
  }

  /** Sees to it that what is held goes back. */
  #watch(held: HeldUnits): void {
    if (!held.isOutstanding) return;
    this.#active.add(held);
    const tickMs = Math.max(SHORTEST_TICK_MS, held.plan.prefetchMs / 4);
    if (this.#timer !== undefined && tickMs >= this.#tickMs) return;
    clearTimeout(this.#timer);
    this.#tickMs = tickMs;
    this.#timer = setTimeout(() => this.#tick(), tickMs).unref();
  }

  /** Units in hand that are near their end are not in use: a busy key renews its own. */
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
