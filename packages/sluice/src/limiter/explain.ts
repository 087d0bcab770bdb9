/**
 * Explains a decision: which rules were considered, why each applies or not, and what the store holds for those that apply.
 */
import { type DecisionSummary, type Degraded, NEVER_MS } from "../decision.js";
import type { ExplainedEstimate, Reservations } from "../reservations/reservations.js";
import type { Attributes } from "../rules/rule.js";
import type { Considered, RuleBook } from "../rules/rule-book.js";
import type { Store } from "../store/store.js";
import { Decision } from "./decision.js";

/** A considered rule, with its stored state. */
export interface ExplainedRule extends Considered {
  readonly state?: Readonly<Record<string, number>>;
  /** When the same request would pass this rule if nothing else arrives; absent if no wait helps. */
  readonly nextAllowedAt?: string;
  /** The unit that the rule counts, if it names one. */
  readonly unit?: string;
  /** The attribute that sets the request's cost under this rule, whatever cost the request itself names. */
  readonly costAttribute?: string;
  /** Set if the rule estimates its cost. */
  readonly estimate?: ExplainedEstimate;
  /** The failure policy that answers for this rule because the store does not; the stored state is then unknown. */
  readonly degraded?: Degraded;
}

/** A decision and its reasons. */
export interface Explanation extends DecisionSummary {
  /** The same decision without the reasons. */
  readonly decision: Decision;
  /** All rules that apply, and the first hundred of the others. */
  readonly rules: readonly ExplainedRule[];
  /** How many more rules do not apply; absent if none. */
  readonly more?: number;
}

interface ExplainedBy {
  readonly attributes: Attributes;
  readonly book: RuleBook;
  readonly store: Store;
  readonly reservations: Reservations;
}

/** `decision`: a peek of the same attributes under the same book. */
export async function explainDecision(
  decision: Decision,
  { attributes, book, store, reservations }: ExplainedBy,
): Promise<Explanation> {
  const { checks, verdicts, nowMs } = Decision.originOf(decision);
  const live = checks.filter(({ plan }) => plan.mode !== "candidate");
  const isDegraded = decision.degraded !== undefined;
  const states = isDegraded ? [] : await Promise.resolve(store.inspect(live)).catch(() => []);
  const placeOf = new Map(live.map(({ plan }, at) => [plan.rule, at]));
  const waits = new Map(checks.map((check, i) => [check, verdicts[i]!.retryAfterMs]));
  const rules = book.explain(attributes).map((considered): ExplainedRule => {
    const at = placeOf.get(considered.rule);
    if (at === undefined) return considered;
    const waitMs = waits.get(live[at]!)!;
    const policy = isDegraded && { degraded: live[at]!.plan.onStoreFailure };
    const { unit } = live[at]!.plan;
    const cost = book.find(considered.rule)?.cost;
    const estimate = live[at]!.plan.estimate && { estimate: reservations.explain(live[at]!) };
    return {
      ...considered,
      ...(states[at] && { state: states[at] }),
      ...(waitMs !== NEVER_MS && { nextAllowedAt: new Date(nowMs + waitMs).toISOString() }),
      ...(unit !== undefined && { unit }),
      ...(typeof cost === "object" && { costAttribute: cost.attribute }),
      ...estimate,
      ...policy,
    };
  });
  const more = book.rules.length - rules.length;
  return { ...decision, decision, rules, ...(more > 0 && { more }) };
}
