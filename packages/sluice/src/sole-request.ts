/**
 * A request with one check at its rule's own cost, without id, lease, hold or name, and its reply: this covers most checks decided in
 * process, in the memory store or from units in hand. Only what differs is stored; everything else is on the prototype. A request is made
 * once per key and reused, because nothing in it belongs to one caller; a reply holds its verdict without a list around it, unless someone
 * asks for one.
 */
import type { State, Verdict } from "./algorithms/model.js";
import type { Check, CheckPlan } from "./check.js";
import type { Guarantee } from "./decision.js";

export class SoleRequest {
  readonly check: Check;
  readonly rulesVersion: number;
  /** Where the memory store found its counter, and how many others had left by then: as long as none leaves, no lookup is needed. */
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

/** Decides such requests; returns undefined for one that the fast path does not cover. */
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
