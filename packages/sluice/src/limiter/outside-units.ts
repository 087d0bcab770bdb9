/**
 * Units that are held and used outside this process, by a holder that reports its use later: Envoy, under its quota service. In:
 * attributes, and fetches like those of prefetch. Out: the rules' checks, and grants. Rejects if the store is away: no failure policy
 * answers here, because the holder has its own.
 */
import type { Fetch, Grant } from "../algorithms/grants.js";
import type { Verdict } from "../algorithms/model.js";
import { capacityOf } from "../algorithms/policy.js";
import type { Check } from "../check.js";
import type { Attributes } from "../rules/rule.js";
import type { RuleBook } from "../rules/rule-book.js";
import type { Store } from "../store/store.js";
import { asCharges } from "./charges.js";
import { nextEntryId } from "./entry-id.js";

export interface OutsideUnits {
  /** The checks of one request, under the rules in force. */
  checks(attributes: Attributes): readonly Check[];
  /** Settles what the holder used of one check's counter, and grants what it requests. The check's rule must have `prefetch`. */
  fetch(check: Check, fetch: Fetch): Promise<{ readonly grant: Grant; readonly verdict: Verdict }>;
  /**
   * Counts use beyond all grants, even past the limit, but with a debt of at most the counter's capacity: a holder's reports may be false,
   * and could otherwise block a key for as long as it likes. (Processes that charge at the same moment add one capacity each.)
   */
  charge(checks: readonly Check[]): Promise<void>;
}

export function outsideUnitsOf(insides: () => { book: RuleBook; store: Store }): OutsideUnits {
  const decide = async (checks: readonly Check[], fetches?: readonly Fetch[]) =>
    await insides().store.decide({
      checks,
      charge: true,
      entryId: nextEntryId(),
      id: undefined,
      fingerprint: "",
      rulesVersion: 0,
      ...(fetches && { fetches }),
    });
  const charging = new Map<string, Promise<void>>();
  const chargeOne = async (check: Check): Promise<void> => {
    const { verdicts } = await decide([{ ...check, cost: 0 }]);
    const cost = Math.min(check.cost, verdicts[0]!.remaining + mostUnits(check));
    if (cost > 0) await decide(asCharges([{ ...check, cost }]));
  };
  /** One at a time: concurrent charges would all look first and find the same room. */
  const inTurn = async (check: Check): Promise<void> => {
    const before = charging.get(check.key) ?? Promise.resolve();
    const mine = before.catch(() => undefined).then(() => chargeOne(check));
    charging.set(check.key, mine);
    await mine.finally(() => {
      if (charging.get(check.key) === mine) charging.delete(check.key);
    });
  };
  return {
    checks: (attributes) => insides().book.checks(attributes, undefined),
    async fetch(check, fetch) {
      // At cost 0 a check is always allowed and charges nothing.
      const { grants, verdicts } = await decide([{ ...check, cost: 0 }], [fetch]);
      return { grant: grants![0]!, verdict: verdicts[0]! };
    },
    async charge(checks) {
      await Promise.all(checks.map(inTurn));
    },
  };
}

/** The most units that a check's counter can grant at once. */
export function mostUnits({ plan }: Check): number {
  return capacityOf(plan.policy);
}

/** The long-run rate of a check's counter, in units per millisecond. */
export function unitsPerMs({ plan: { policy } }: Check): number {
  if ("amount" in policy) return policy.amount / policy.scaleMs;
  return "windowMs" in policy ? policy.limit / policy.windowMs : policy.limit;
}
