/**
 * A check: one rule applied to one key at one cost. Rules make checks, stores decide them.
 */
import type { Policy } from "./algorithms/policy.js";
import type { CheckMode } from "./decision.js";

/** What all checks of one rule (and variant, override, candidate) share; made once per rule book. */
export interface CheckPlan {
  readonly rule: string;
  readonly mode: CheckMode;
  readonly variant: string | undefined;
  readonly policy: Policy;
  /** The rule's word for what it counts; absent: requests. */
  readonly unit?: string;
  /** The end of its counters' keys (`keys.ts`). */
  readonly keyEnd: string;
  readonly onStoreFailure: "allow" | "deny" | "local";
  /** How long a holder may use prefetched units; 0: the store decides every check. */
  readonly prefetchMs: number;
  /** How far away a turn may be (`algorithms/turns.ts`); 0: what does not fit now is refused. */
  readonly maxWaitMs: number;
  /** For a rule whose counters are in the global store: how long a region may hold units of them; otherwise 0. */
  readonly regionTermMs: number;
  readonly block?: { readonly keyEnd: string; readonly lengthsMs: readonly number[] };
  /** Set if the cost is known only afterwards. */
  readonly estimate?: PlannedEstimate;
}

/** How much a check holds, and for how long (a rule's `estimate`). */
export interface PlannedEstimate {
  /** The attribute that carries the cost when the work is done. */
  readonly cost: string;
  /** Undefined: the one that suits the limit (`reservations/quantile-to-hold.ts`). */
  readonly quantile: number | undefined;
  readonly default: number;
  readonly ttlMs: number;
  readonly finishes: boolean;
  /** The keys whose costs are learned together: those under the same override, or "" for those under none. */
  readonly keyClass: string;
}

/** A block that a refusal of the check begins (`algorithms/block.ts`). */
export interface CheckBlock {
  /** From `keys.ts`, without the prefix; with the counter's hash tag. */
  readonly key: string;
  readonly lengthsMs: readonly number[];
}

export interface HeldCost {
  /** The upper bound that the request declares, if any. */
  readonly said: number | undefined;
  /** If several parts of a request share a counter, and some of them declare their cost: the total of these costs. */
  readonly told?: number;
}

export interface Check {
  readonly plan: CheckPlan;
  /** From `keys.ts`, without the prefix. */
  readonly key: string;
  readonly cost: number;
  /** For a candidate: the index of its live check in the same list. -1 for every other check. */
  readonly live: number;
  /** Counted in full, whatever the counter holds; then only reported as refused if the counter is past its limit. */
  readonly charge?: true;
  readonly block?: CheckBlock;
  /** Set if the cost, or a part of it, is an estimate and is held. */
  readonly held?: HeldCost;
}
