/**
 * A request on its way to the store.
 * In: its checks, and the caller's options. Out: the store's request, with a name for its entries, the caller's id and fingerprint;
 * malformed options throw `invalid-request`.
 */
import type { Check } from "../check.js";
import { termOf } from "../reservations/reservations.js";
import type { Attributes } from "../rules/rule.js";
import type { RuleBook } from "../rules/rule-book.js";
import type { Admission } from "../shedding/load-shedder.js";
import type { StoreRequest } from "../store/store.js";
import { checkedId, entriesFit, namesFit, placesFit } from "./check-input.js";
import { newLeaseId, nextEntryId } from "./entry-id.js";
import { fingerprintOf } from "./fingerprint.js";
import type { LeaveSignal } from "./waits.js";

export interface CheckOptions {
  /** Overrides the rules' own cost; 0 only looks. */
  cost?: number;
  /** The same request with the same id within a minute gets the same decision and is charged once; another request is refused as invalid. */
  id?: string;
  /**
   * False where the caller cannot report the end of the request (a gateway that only asks): under a load-shedding rule it is judged by
   * the requests in flight, and is none itself. Default true: the decision's lease holds a place until it is released.
   */
  hold?: boolean;
  /**
   * False where the caller cannot wait: a rule with `maxWait` then refuses what does not fit now. Default true: `delayMs` tells when the
   * request may go on.
   */
  wait?: boolean;
}

/** Of `acquire`, which waits itself. */
export interface AcquireOptions extends CheckOptions {
  /** Aborted: the turn is given back, and `acquire` rejects with the signal's reason. */
  signal?: LeaveSignal | undefined;
}

/** One attribute set of several that are decided as one request. */
export interface CheckPart {
  readonly attributes: Attributes;
  readonly cost?: number | undefined;
  /**
   * Counted in full, even if the request is refused, by this part itself or by another. Its checks are refused where their counters
   * then are past their limits; at cost 0 they only report whether that is so.
   */
  readonly charge?: boolean | undefined;
  /** Rules for this part alone, instead of those in force (`ruleBook`). */
  readonly book?: RuleBook | undefined;
}

/** The request behind a decision. `checks`: its counters, in the order of the decision's checks. */
export interface DecidedRequest {
  readonly attributes: Attributes;
  readonly options: CheckOptions;
  readonly checks: readonly Pick<Check, "key" | "cost">[];
}

export interface CheckRequest extends StoreRequest {
  readonly attributes: Attributes;
  readonly options: CheckOptions;
  readonly neverRefused: boolean;
  /** Whether a rule with prefetch is among the checks'. */
  readonly mayPrefetch: boolean;
  /** What the load-shedding rules answered, if any applied. */
  readonly admission: Admission | undefined;
  /** Whether it may not wait because too many do. */
  readonly isCrowded: boolean;
  /** Where several attribute sets are one request. */
  readonly parts: readonly CheckPart[] | undefined;
  /** Before the store was asked; 0 where no check can hold a lease. */
  readonly sinceMonotonicMs: number;
}

export interface Asked {
  readonly attributes: Attributes;
  readonly options: CheckOptions;
  /** False only looks. */
  readonly charge: boolean;
  readonly neverRefused?: boolean;
  readonly admission?: Admission | undefined;
  /** Whether it may not wait because too many do. */
  readonly isCrowded?: boolean;
  /** Where several attribute sets are one request. */
  readonly parts?: readonly CheckPart[];
  /** Whether the request gets an entry id in any case. */
  readonly isNamed?: boolean;
}

export function checkRequest(checks: readonly Check[], rulesVersion: number, asked: Asked): CheckRequest {
  const { attributes, options, charge, neverRefused = false, admission, isCrowded = false, parts } = asked;
  let leases = 0;
  let named = asked.isNamed === true;
  let mayPrefetch = false;
  let holds = 0;
  for (let i = 0; i < checks.length; i++) {
    const { plan } = checks[i]!;
    const { stored } = plan.policy;
    if (plan.prefetchMs > 0) mayPrefetch = true;
    if (checks[i]!.held !== undefined) holds++;
    // A turn that is given back goes by the name of its charge.
    if (plan.maxWaitMs > 0) named = true;
    if (stored === "concurrency") {
      placesFit(checks[i]!);
      leases++;
    } else if (stored === "rolling-window") named = entriesFit(checks[i]!);
  }
  namesFit(leases, "concurrency rules");
  namesFit(holds, "rules with an estimate");
  const id = options.id === undefined ? undefined : checkedId(options.id);
  return {
    checks,
    charge,
    // Sorted sets keep a name per entry, and the record of an id the name of its charge.
    // Who knows the name of a lease or of a reservation may end it: it must not be guessed.
    entryId: leases + holds > 0 ? newLeaseId() : named || id !== undefined ? nextEntryId() : "",
    id,
    fingerprint: id === undefined ? "" : fingerprintOfAll(asked),
    rulesVersion,
    holdMs: holds > 0 && charge ? termOf(checks) : undefined,
    attributes,
    options,
    neverRefused,
    mayPrefetch,
    admission,
    isCrowded,
    parts,
    sinceMonotonicMs: leases > 0 ? performance.now() : 0,
  };
}

function fingerprintOfAll({ attributes, options, neverRefused = false, parts }: Asked): string {
  return fingerprintOf(parts ?? [{ attributes, cost: options.cost, charge: neverRefused }]);
}
