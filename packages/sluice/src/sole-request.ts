/**
 * A request of one check at its rule's own cost, without id, lease, hold or name, and the reply to it: what most checks in process are, in
 * the memory store or from units in hand. Only what differs is kept; all else is said once, on the prototype. A request is made once for a key and used again, for nothing in
 * it belongs to one caller; a reply holds its verdict without a list around it, unless somebody asks for one.
 */
import type { State, Verdict } from "./algorithms/model.js";
import type { Check, CheckPlan } from "./check.js";
import type { Guarantee } from "./decision.js";

export class SoleRequest {
  readonly check: Check;
  readonly rulesVersion: number;
  /** Where the memory store found its counter, and how many others had left by then: while none leaves, it need not be searched. */
  counter: State | undefined = undefined;
  departures = 0;

  constructor(plan: CheckPlan, key: string, cost: number, rulesVersion: number) {
    this.check = { plan, key, cost, live: -1 };
    this.rulesVersion = rulesVersion;
  }

  get checks(): readonly Check[] {
    return [this.check];
  }

  get charge(): true {
    return true;
  }

  get entryId(): "" {
    return "";
  }

  get id(): undefined {
    return undefined;
  }

  get fingerprint(): "" {
    return "";
  }
}

/** A store's reply with one verdict, which a decision reads without the list around it. */
export interface SoleReply {
  readonly nowMs: number;
  readonly verdict: Verdict;
  readonly verdicts: readonly Verdict[];
  readonly guarantee: Guarantee;
}

/** What decides such requests; undefined where one asks for more than the short way does. */
export interface SoleDecider {
  decideSole(request: SoleRequest): SoleReply | undefined;
}

export class AtomicSoleReply implements SoleReply {
  readonly nowMs: number;
  readonly verdict: Verdict;

  constructor(nowMs: number, verdict: Verdict) {
    this.nowMs = nowMs;
    this.verdict = verdict;
  }

  get verdicts(): readonly Verdict[] {
    return [this.verdict];
  }

  get guarantee(): "atomic" {
    return "atomic";
  }
}
