/**
 * A request on its way to the store. In: its checks, and the caller's options. Out: the store's request, with an entry id and the caller's
 * id and fingerprint. Malformed options throw `invalid-request`.
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
  /** Overrides the cost that the rules define; 0 only looks. */
  cost?: number;
  /**
   * Idempotency key: a retry with the same id within a minute gets the same decision and is charged once. A different request under the id
   * is invalid.
   */
  id?: string;
  /**
   * Set to false if the caller cannot report when the request ends (a gateway that only asks). A load-shedding rule then judges the request
   * by the number in flight, but does not count it as one. Default true: the decision's lease holds a place until it is released.
   */
  hold?: boolean;
  /**
   * Set to false if the caller cannot wait: a rule with `maxWait` then refuses what does not fit now. Default true: `delayMs` is how long
   * the request must wait.
   */
  wait?: boolean;
  /** How long the caller can wait, if less than a rule's `maxWait`: a request whose turn is further away is refused. */
  maxWaitMs?: number | undefined;
}

/** Options of `acquire`, which does the waiting itself. */
export interface AcquireOptions extends CheckOptions {
  /** When aborted, the turn is given back and `acquire` rejects with the signal's reason. */
  signal?: LeaveSignal | undefined;
}

/** One of several attribute sets that are decided as one request. */
export interface CheckPart {
  readonly attributes: Attributes;
  readonly cost?: number | undefined;
  /**
   * Counted in full, even if this part or another one refuses the request. Its checks are refused if their counters are then past their
   * limits; at cost 0 they only report whether they are.
   */
  readonly charge?: boolean | undefined;
  /** Rules for this part alone, instead of the rules in force (`ruleBook`). */
  readonly book?: RuleBook | undefined;
}

/** The request behind a decision. `checks`: its counters, in the same order as the decision's checks. */
export interface DecidedRequest {
  readonly attributes: Attributes;
  readonly options: CheckOptions;
  readonly checks: readonly Pick<Check, "key" | "cost">[];
}

export interface CheckRequest extends StoreRequest {
  readonly attributes: Attributes;
  readonly options: CheckOptions;
  readonly neverRefused: boolean;
  /** True if any of the checks belongs to a rule with prefetch. */
  readonly mayPrefetch: boolean;
  /** The answer of the load-shedding rules, if any applied. */
  readonly admission: Admission | undefined;
  /** True if the request may not wait because too many others already do. */
  readonly isCrowded: boolean;
  /** Set if several attribute sets are decided as one request. */
  readonly parts: readonly CheckPart[] | undefined;
  /** Taken before the store was asked; 0 if no check can hold a lease. */
  readonly sinceMonotonicMs: number;
}

export interface Asked {
  readonly attributes: Attributes;
  readonly options: CheckOptions;
  /** If false, only looks. */
  readonly charge: boolean;
  readonly neverRefused?: boolean;
  readonly admission?: Admission | undefined;
  /** True if the request may not wait because too many others already do. */
  readonly isCrowded?: boolean;
  /** Set if several attribute sets are decided as one request. */
  readonly parts?: readonly CheckPart[];
}

/** The same for all requests of a limiter. Not part of `Asked`: an object spread for each check would be a twentieth of its time. */
export interface ForAllRequests {
  /** True if each request gets an entry id. */
  readonly isNamed: boolean;
  readonly versionIsLocal: boolean | undefined;
}

interface Found {
  readonly checks: readonly Check[];
  readonly rulesVersion: number;
}

export function checkRequest(found: Found, asked: Asked, forAll: ForAllRequests): CheckRequest {
  const { checks, rulesVersion } = found;
  const { attributes, options, charge, neverRefused = false, admission, isCrowded = false, parts } = asked;
  let leases = 0;
  let named = forAll.isNamed;
  let mayPrefetch = false;
  let holds = 0;
  for (let i = 0; i < checks.length; i++) {
    const { plan } = checks[i]!;
    const { stored } = plan.policy;
    if (plan.prefetchMs > 0) mayPrefetch = true;
    if (checks[i]!.held !== undefined) holds++;
    // A turn is given back by the name of its charge.
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
    // A sorted set keeps a name per entry, and an id's record keeps the name of its charge. Anyone who knows the name of a lease or
    // reservation may end it, so that name must not be guessable.
    entryId: leases + holds > 0 ? newLeaseId() : named || id !== undefined ? nextEntryId() : "",
    id,
    fingerprint: id === undefined ? "" : fingerprintOfAll(asked),
    rulesVersion,
    versionIsLocal: forAll.versionIsLocal,
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
