/**
 * A check: one rule applied to one key at one cost. Rules make checks, stores decide them.
 */
import type { Policy } from "./algorithms/policy.js";
import type { CheckMode } from "./decision.js";

/** The part that all checks of one rule (and variant, override, candidate) share; made once per rule book. */
export interface CheckPlan {
  readonly rule: string;
  readonly mode: CheckMode;
  readonly variant: string | undefined;
  readonly policy: Policy;
  /** The rule's word for what it counts; absent: requests. */
  readonly unit?: string;
  /** How the keys of its counters end (`keys.ts`). */
  readonly keyEnd: string;
  readonly onStoreFailure: "allow" | "deny" | "local";
  /** How long a holder may use units that it fetched ahead; 0: every check is decided by the store. */
  readonly prefetchMs: number;
  /** How far away a turn may be (`algorithms/turns.ts`); 0: what does not fit now is refused. */
  readonly maxWaitMs: number;
  /** Of a rule whose counters lie in the global store: how long a region may hold units of them; 0 for every other. */
  readonly regionTermMs: number;
  readonly block?: { readonly keyEnd: string; readonly lengthsMs: readonly number[] };
  /** Where the cost is known only afterwards. */
  readonly estimate?: PlannedEstimate;
}

/** How much a check holds, and until when (`estimate` of a rule). */
export interface PlannedEstimate {
  /** The attribute that tells the cost when the work is done. */
  readonly cost: string;
  /** Undefined: the one that suits the limit (`reservations/quantile-to-hold.ts`). */
  readonly quantile: number | undefined;
  readonly default: number;
  readonly ttlMs: number;
  readonly finishes: boolean;
  /** The keys whose costs are learned together: those under the same override. "" for those under none. */
  readonly keyClass: string;
}

/** A block that a refusal of the check begins (`algorithms/block.ts`). */
export interface CheckBlock {
  /** From `keys.ts`, without the prefix; under the tag of the counter's. */
  readonly key: string;
  readonly lengthsMs: readonly number[];
}

export interface Check {
  readonly plan: CheckPlan;
  /** From `keys.ts`, without the prefix. */
  readonly key: string;
  readonly cost: number;
  /** For a candidate: where its live check stands in the same list. -1 for every other check. */
  readonly live: number;
  /** Counted in full, whatever the counter says; refused in name only, where the counter then is past its limit. */
  readonly charge?: true;
  readonly block?: CheckBlock;
  /** Present where the cost is an estimate, and is held: `said` is the upper bound that the request names, if it names one. */
  readonly held?: { readonly said: number | undefined };
}
