/**
 * The units of one key that this process has prefetched, and how many to fetch next. In: uses, fetches that are sent, grants that come
 * back; time is an argument. Out: whether units are left, and the next fetch. Pure.
 *
 * A fetch reports how many units are in hand, and these live on together with what is granted: so all units in hand expire together. Units
 * in hand may be used while the fetch is in flight. A fetch whose answer is lost changes nothing here: the next one reports again what is
 * in hand, and the store takes back what this process never received.
 */
import type { Fetch, Grant } from "../algorithms/grants.js";
import { MOST_ENTRIES } from "../algorithms/rolling-window.js";
import type { CheckPlan } from "../check.js";
import type { StoreReply, StoreRequest } from "../store/store.js";

/** The uses that one fetch settles: a refund must know when they were charged, and under which name. */
export interface Uses {
  readonly held: HeldUnits;
  /** The sequence number of that fetch; 0 while they wait for one. */
  seq: number;
  /** When it charged them; 0 while it is in flight. */
  atMs: number;
  /** What a bucket lacked then, as a refund needs it (`algorithms/charged.ts`). */
  owed: number;
  /** The uses that they were settled with, if their own fetch was lost. */
  movedTo: Uses | undefined;
  /** How many of their units went back to the store. */
  refunded: number;
}

/**
 * Requests of one event-loop turn that the store decides as one. `decided`: makes each one's reply; undefined if each has to ask by itself.
 */
interface Together {
  readonly plan: CheckPlan;
  readonly requests: StoreRequest[];
  readonly decided: Promise<(() => StoreReply) | undefined>;
}

/** How a fetch ended, for the requests that waited for it. */
export interface FetchEnd {
  /** Why the store did not answer: it would not have answered these requests either. */
  readonly failure?: unknown;
  /** Set if nothing was left for some of them. */
  readonly refusals?: ReadonlyMap<HeldUnits, Refusal>;
}

export interface Refusal {
  readonly nowMs: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
}

/**
 * A key that the store refused is not asked for again for at most this long: what others refund or settle is noticed within it, as for
 * cached refusals.
 */
export const LONGEST_REFUSAL_MS = 1_000;
/** Clocks may drift apart by this fraction of a term; the store's clock also truncates a fraction of a millisecond. */
const DRIFT = 0.02;
const TRUNCATION_MS = 1;
/** The rate is measured over about this long. */
const RATE_MEMORY_MS = 50;
/** This many requests are evidence that a key has become busier, which is then followed faster. */
const TELLING_REQUESTS = 64;
const RISING_WEIGHT = 1 / 4;
const MOST_WANTED = 1_000_000;
/** For this many terms nothing is fetched after units arrived dead. */
const PAUSE_TERMS = 5;
/**
 * Pause between two fetches of a busy key whose units are scarce, so that each brings several: a fraction of a term, and at most this long.
 * Only if at least this many requests arrive meanwhile: those that find no unit wait for the next fetch.
 */
const PAUSE_SHARE = 1 / 8;
const LONGEST_PAUSE_MS = 10;
const TELLING_PAUSE = 8;
/** How long an idle key is remembered. */
const IDLE_MS = 10_000;

export class HeldUnits {
  readonly key: string;
  readonly holder: string;
  plan: CheckPlan;
  units = 0;
  /** Not usable from then on. Counted from when the fetch was sent, so that clocks need not agree. */
  endsAtMonotonicMs = 0;
  /** At or below this many units, or from this instant on, the next ones are fetched ahead. */
  low = -1;
  renewAtMonotonicMs = Number.POSITIVE_INFINITY;
  /** As last reported by the store. */
  resetAfterMs = 0;
  nowMs = 0;
  /** Until then, on the store's clock, a settlement still finds the units that are in hand. */
  settledUntilMs = 0;
  /** A fetch ahead is due at the end of this turn. */
  isDue = false;
  /** Resolves when the fetch in flight has ended, one way or the other. */
  underWay: Promise<FetchEnd> | undefined;
  /** Whether that fetch asks for units: requests without one then wait for it. */
  isWanting = false;
  /** Whether it is not sent yet: requests of the same turn are included. */
  isBoarding = false;
  /** Units that these requests wait for: the fetch asks for them too. */
  claimed = 0;
  /** The requests of this turn, if no units can be had. */
  together: Together | undefined;
  /** Until then the store would refuse, as far as is known. */
  refusedUntilMonotonicMs = 0;
  /** Until then requests without units wait, and then become one fetch: the last one brought less than was wanted. */
  pausesUntilMonotonicMs = 0;
  /** Uses since the last fetch was sent. */
  uses: Uses = newUses(this);
  /** For the map that holds it. */
  endsAtMs: number;
  readonly bytes = 0;
  #seq = 0;
  /** The fetch whose answer counts; 0 once it has arrived. */
  #awaitedSeq = 0;
  #used = 0;
  /** How many of these the last fetch reported, and how many the last answered one did. */
  #told = 0;
  #settled = 0;
  #rate = 0;
  #arrived = 0;
  #sinceMonotonicMs: number;
  #roundTripMs = 0;
  #pausedUntilMonotonicMs = 0;

  constructor(key: string, plan: CheckPlan, holder: string, nowMonotonicMs: number) {
    this.key = key;
    this.plan = plan;
    this.holder = holder;
    this.#sinceMonotonicMs = nowMonotonicMs;
    this.endsAtMs = nowMonotonicMs + IDLE_MS;
  }

  /** Whether the store still counts anything as held by this process, as far as is known. */
  get isOutstanding(): boolean {
    return this.units > 0 || this.#used !== this.#settled;
  }

  has(cost: number, nowMonotonicMs: number): boolean {
    return this.units >= cost && nowMonotonicMs < this.endsAtMonotonicMs;
  }

  /** Call after `has`. */
  use(cost: number): void {
    this.units -= cost;
    this.#used += cost;
    this.#arrived += cost;
  }

  /** Takes back units of uses that were not settled yet. */
  unuse(cost: number): void {
    this.units += cost;
    this.#used -= cost;
  }

  /**
   * Call before a reset of the counter. Returns a function that forgets, once the reset is done, the uses that no fetch had reported yet:
   * what they used is freed by the next one. Those that a fetch has reported meanwhile stay: the store may have charged them, and a count
   * behind the store's would let as many later uses pass uncharged.
   */
  beforeReset(): () => void {
    const told = this.#told;
    const untold = this.#used - told;
    return () => {
      if (this.#told !== told || untold === 0) return;
      this.#used = Math.max(told, this.#used - untold);
      // A refund of a forgotten use would give its unit back a second time.
      this.#forgetUses();
    };
  }

  /** Refunds of the uses since the last fetch give nothing back. */
  #forgetUses(): void {
    this.uses.movedTo = newUses(this);
    this.uses = this.uses.movedTo;
  }

  /** Call before the store is asked. If the rule changed, what was fetched under the old one goes back. */
  ask(plan: CheckPlan, nowMonotonicMs: number): void {
    this.endsAtMs = nowMonotonicMs + IDLE_MS;
    if (plan === this.plan) return;
    this.plan = plan;
    this.units = 0;
  }

  /** Counts a request that the store decides. */
  arrive(cost: number): void {
    this.#arrived += cost;
  }

  needsFetchAhead(nowMonotonicMs: number): boolean {
    return this.units <= this.low || nowMonotonicMs >= this.renewAtMonotonicMs;
  }

  /** Whether a request of this cost should carry a fetch. Not for a cold key, which has nothing to settle and nothing to want. */
  needsFetch(cost: number, nowMonotonicMs: number): boolean {
    this.#measure(nowMonotonicMs);
    return this.isOutstanding || this.#wanted(nowMonotonicMs) > cost;
  }

  /** The next fetch, along with a request of this cost. */
  nextFetch(cost: number, nowMonotonicMs: number): Fetch {
    this.#measure(nowMonotonicMs);
    // A key whose requests all find units in hand is not idle.
    this.endsAtMs = nowMonotonicMs + IDLE_MS;
    // Give up dead units right now: the grant must not revive them.
    if (nowMonotonicMs >= this.endsAtMonotonicMs) this.units = 0;
    const held = this.units;
    const want = Math.max(0, this.#wanted(nowMonotonicMs) - held - cost);
    return this.#fetch(held, want, Math.min(want, this.claimed));
  }

  /** What is used in half a term and while the fetch after this one is in flight, or what requests wait for. */
  #wanted(nowMonotonicMs: number): number {
    if (nowMonotonicMs < this.#pausedUntilMonotonicMs) return 0;
    const { prefetchMs, policy } = this.plan;
    const cycleMs = prefetchMs / 2 + Math.min(this.#roundTripMs, prefetchMs / 2);
    const most = policy.stored === "rolling-window" ? MOST_ENTRIES : MOST_WANTED;
    return Math.min(most, Math.max(this.claimed, Math.ceil(this.#rate * cycleMs)));
  }

  /** Settles, and gives back what is in hand. */
  lastFetch(): Fetch {
    this.units = 0;
    return this.#fetch(0, 0, 0);
  }

  #fetch(held: number, want: number, need: number): Fetch {
    this.low = -1;
    this.renewAtMonotonicMs = Number.POSITIVE_INFINITY;
    this.#told = this.#used;
    this.#awaitedSeq = ++this.#seq;
    return { holder: this.holder, seq: this.#seq, used: this.#used, held, want, need };
  }

  /** Names a charge that is not a fetch. Numbers only grow, so the next fetch has a later one. */
  nextSeq(): number {
    return ++this.#seq;
  }

  /** Returns the uses that the fetch settles. */
  sent({ seq }: Fetch): Uses {
    const uses = this.uses;
    uses.seq = seq;
    this.uses = newUses(this);
    return uses;
  }

  /** `plan`: the one under which the units were requested. */
  granted(
    fetch: Fetch,
    grant: Grant,
    sent: { plan: CheckPlan; sentMonotonicMs: number; nowMonotonicMs: number },
  ): void {
    // A later fetch has reported these units as never received, so others may have them by now. A repeated answer counts once.
    if (fetch.seq !== this.#awaitedSeq) return;
    this.#awaitedSeq = 0;
    this.#settled = fetch.used;
    // Units that expired on the way were counted as used: those used since, too.
    if (grant.kept < fetch.held) {
      this.units = 0;
      this.#forgetUses();
    }
    if (sent.plan === this.plan) this.units += grant.units;
    const lifeMs = Math.max(0, grant.lifeMs * (1 - DRIFT) - TRUNCATION_MS);
    this.endsAtMonotonicMs = sent.sentMonotonicMs + lifeMs;
    this.#roundTripMs = sent.nowMonotonicMs - sent.sentMonotonicMs;
    // Units that are dead on arrival only cost: the store is too far away, or this process too busy.
    if (sent.nowMonotonicMs >= this.endsAtMonotonicMs)
      this.#pausedUntilMonotonicMs = sent.nowMonotonicMs + PAUSE_TERMS * this.plan.prefetchMs;
    const isScarce = grant.units < fetch.want && this.#rate * this.#pauseMs() >= TELLING_PAUSE;
    this.pausesUntilMonotonicMs = isScarce ? sent.sentMonotonicMs + this.#pauseMs() : 0;
    if (this.units === 0) return;
    this.renewAtMonotonicMs = this.endsAtMonotonicMs - lifeMs / 4;
    // If nothing is left, the next fetch waits for a request that needs it.
    if (grant.units === 0 && fetch.want > 0) return;
    // Near the limit an early fetch brings little: the longer it waits, the more has been freed.
    if (isScarce) this.renewAtMonotonicMs = Math.min(this.renewAtMonotonicMs, sent.sentMonotonicMs + lifeMs / 4);
    // Half of them cover a burst while the next fetch is in flight.
    else this.low = Math.floor(this.units / 2);
  }

  #pauseMs(): number {
    return Math.min(LONGEST_PAUSE_MS, this.plan.prefetchMs * PAUSE_SHARE);
  }

  /** What was never reported to the store has expired there by itself. */
  giveUp(): void {
    this.units = 0;
    this.#settled = this.#used;
  }

  #measure(nowMonotonicMs: number): void {
    const elapsedMs = nowMonotonicMs - this.#sinceMonotonicMs;
    if (elapsedMs < 1) return;
    const seen = this.#arrived / elapsedMs;
    const weight = 1 - Math.exp(-elapsedMs / Math.max(RATE_MEMORY_MS, this.plan.prefetchMs));
    const isRising = this.#arrived >= TELLING_REQUESTS && seen > this.#rate;
    this.#rate += (isRising ? Math.max(weight, RISING_WEIGHT) : weight) * (seen - this.#rate);
    this.#arrived = 0;
    this.#sinceMonotonicMs = nowMonotonicMs;
  }
}

function newUses(held: HeldUnits): Uses {
  return { held, seq: 0, atMs: 0, owed: 0, movedTo: undefined, refunded: 0 };
}
