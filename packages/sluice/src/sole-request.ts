/**
 * A request of one check at its rule's own cost, without id, lease, hold or name, and the store's reply to it: what most checks in memory
 * are. Only what differs is kept; all else is said once, on the prototype. A request is made once for a key and used again, for nothing in
 * it belongs to one caller; a reply holds its verdict without a list around it, unless somebody asks for one.
 */
import type { Verdict } from "./algorithms/model.js";
import type { Check, CheckPlan } from "./check.js";

export class SoleRequest {
  readonly check: Check;
  readonly rulesVersion: number;

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

export class SoleReply {
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
