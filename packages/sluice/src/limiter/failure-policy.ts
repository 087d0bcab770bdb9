/**
 * Answers a request that the store did not answer, by the failure policy of each of its rules.
 *   local  counts in this process, at this instance's share of the limit (the default: protection continues, within a bound)
 *   allow  passes, uncounted (fail open)
 *   deny   refuses with `store-unavailable` (fail closed)
 * All-or-nothing still holds: if one rule denies, nothing is charged locally.
 */
import { type Verdict, verdict } from "../algorithms/model.js";
import { capacityOf, type Policy } from "../algorithms/policy.js";
import { sharePolicy } from "../algorithms/share-policy.js";
import type { Check } from "../check.js";
import { type Degraded, NEVER_MS } from "../decision.js";
import type { Store, StoreRequest } from "../store/store.js";

/** The wait reported to a refused client: roughly how long it takes to notice that a store is back. */
const RETRY_AFTER_OUTAGE_MS = 1_000;

interface FailureAnswer {
  /** The checks as they were decided: `local` ones at this instance's share. */
  readonly checks: readonly Check[];
  readonly verdicts: readonly Verdict[];
  readonly degraded: Degraded;
  readonly nowMs: number;
}

export class FailurePolicy {
  readonly #local: Store;
  readonly #sharers: (check: Check) => number;
  #shared = new WeakMap<Policy, { by: number; policy: Policy }>();

  /** `sharers`: how many instances share a check's limit, as far as is known. */
  constructor(local: Store, sharers: (check: Check) => number) {
    this.#local = local;
    this.#sharers = sharers;
  }

  async answer(request: StoreRequest): Promise<FailureAnswer> {
    const { checks } = request;
    const isLocal = (check: Check): boolean => check.plan.onStoreFailure === "local";
    const verdicts = checks.map((check) => (isLocal(check) ? undefined : uncounted(check)));
    const refused = checks.some(({ plan }, i) => plan.mode === "enforce" && verdicts[i]?.allowed === false);
    const hasCharges = checks.some(({ charge }) => charge === true);
    const locals = checks
      .filter(isLocal)
      .map((check) => this.#scaled(refused && check.charge !== true && hasCharges ? { ...check, cost: 0 } : check));
    const counted = await this.#local.decide({
      ...request,
      // Only the store remembers answers by id, and the checks counted here are not the ones it would remember.
      id: undefined,
      fetches: undefined,
      holdMs: locals.some(({ held }) => held !== undefined) ? request.holdMs : undefined,
      // Charges count even if another rule denies.
      charge: request.charge && (hasCharges || !refused),
      checks: locals.map((check) => ({ ...check, live: this.#liveOf(check, checks, locals) })),
    });
    let next = 0;
    let nextLocal = 0;
    const denied = verdicts.some((found) => found?.reason === "store-unavailable");
    return {
      checks: checks.map((check) => (isLocal(check) ? locals[nextLocal++]! : check)),
      verdicts: verdicts.map((found) => found ?? counted.verdicts[next++]!),
      degraded: denied ? "deny" : locals.length > 0 ? "local" : "allow",
      nowMs: counted.nowMs,
    };
  }

  /** A candidate's live check has the same failure policy, so it is in the same, shorter list. */
  #liveOf(check: Check, all: readonly Check[], locals: readonly Check[]): number {
    return check.live < 0 ? -1 : locals.findIndex(({ key }) => key === all[check.live]!.key);
  }

  #scaled(check: Check): Check {
    const { policy } = check.plan;
    const by = this.#sharers(check);
    let shared = this.#shared.get(policy);
    if (shared === undefined || shared.by !== by) {
      shared = { by, policy: sharePolicy(policy, 1 / by) };
      this.#shared.set(policy, shared);
    }
    const { policy: scaled } = shared;
    // An estimate never exceeds what the counter can hold.
    const { cost: asked, held } = check;
    const cost = held === undefined ? asked : Math.max(held.told ?? 0, Math.min(asked, capacityOf(scaled)));
    return { ...check, cost, plan: { ...check.plan, policy: scaled } };
  }
}

function uncounted({ plan, cost, charge }: Check): Verdict {
  const { limit } = plan.policy;
  if (limit === 0 && charge !== true && cost > 0) return verdict(false, 0, NEVER_MS, 0, "limit");
  // A cost that no counter could hold is refused, whatever the counter holds now.
  if (charge !== true && cost > capacityOf(plan.policy))
    return verdict(false, limit, NEVER_MS, 0, "cost-exceeds-limit");
  if (plan.onStoreFailure === "deny" && plan.mode === "enforce") {
    return verdict(false, 0, RETRY_AFTER_OUTAGE_MS, 0, "store-unavailable");
  }
  return verdict(true, limit, 0, 0, undefined);
}
