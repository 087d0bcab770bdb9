/**
 * Moves the limits of rules with `adapt`, once a second. Each rule has one limit for all instances; it is kept in the store and moved by
 * the elected leader (limits.lua). In: rules in force, utilisation. Out: plans with the limit in force, which replace the previous plans,
 * and an event for each move. A plan is never mutated: refunds and settlements use the numbers that their charge was made with.
 *
 * While the store is away, each instance keeps the last limit, and after half a minute lets it drift back to the rule's configured limit.
 * When the store is back, its limit applies again.
 */

import { scalePolicy } from "../algorithms/scale-policy.js";
import type { CheckPlan } from "../check.js";
import type { AdaptSignal, CountingRule, Rule } from "../rules/rule.js";
import type { RuleBook } from "../rules/rule-book.js";
import { LimitController } from "../shedding/limit-controller.js";
import type { Store } from "../store/store.js";

/** One move of a limit, as this instance saw it. */
export interface LimitMove {
  readonly rule: string;
  readonly from: number;
  readonly to: number;
  /** The utilisation that caused the move; undefined if unknown. */
  readonly utilisation: number | undefined;
  /** True if this instance moved the limit for all. False: it follows the leader's move, or moves alone. */
  readonly leads: boolean;
  /** The store is away, so the limit moved for this instance only. */
  readonly alone: boolean;
}

/** The state of an adaptive rule. */
export interface AdaptiveStats {
  readonly rule: string;
  /** The limit in force now. */
  readonly limit: number;
  readonly configured: number;
  readonly min: number;
  readonly max: number;
  readonly target: number;
  readonly utilisation: number | undefined;
  readonly raised: number;
  readonly lowered: number;
  readonly leads: boolean;
}

interface Adaptive {
  readonly rule: CountingRule & { adapt: NonNullable<CountingRule["adapt"]> };
  readonly book: RuleBook;
  /** With the rule's configured numbers. */
  readonly plans: readonly CheckPlan[];
  readonly controller: LimitController;
  /** Not rounded. */
  limit: number;
  utilisation: number | undefined;
  raised: number;
  lowered: number;
}

interface AdaptiveLimitsOptions {
  readonly store: Store;
  readonly instance: string;
  readonly now: () => number;
  readonly utilisationOf: (signal: AdaptSignal) => number | undefined;
  readonly onMove: (move: LimitMove) => void;
}

const STEP_MS = 1_000;
/** Leader lease: another instance takes over this long after the leader is gone. */
const LEADS_MS = 3_000;

export class AdaptiveLimits {
  readonly #options: AdaptiveLimitsOptions;
  #rules: Adaptive[] = [];
  #leads = false;
  #timer: NodeJS.Timeout | undefined;
  #isStepping = false;
  #isAway = false;

  constructor(options: AdaptiveLimitsOptions) {
    this.#options = options;
  }

  /** Rules that stay in force keep their limits and counts. */
  follow(book: RuleBook): void {
    const before = new Map(this.#rules.map((adaptive) => [adaptive.rule.id, adaptive]));
    this.#rules = book.rules.filter(isAdaptive).map((rule) => this.#adaptive(rule, book, before.get(rule.id)));
    for (const adaptive of this.#rules) apply(adaptive);
    if (this.#rules.length === 0) this.close();
    else if (this.#timer === undefined) {
      this.#timer = setInterval(() => void this.step(), STEP_MS);
      this.#timer.unref();
    }
  }

  stats(): AdaptiveStats[] {
    return this.#rules.map(({ rule, limit, utilisation, raised, lowered }) => ({
      rule: rule.id,
      limit: Math.round(limit),
      configured: rule.limit,
      min: rule.adapt.min,
      max: rule.adapt.max,
      target: rule.adapt.target,
      utilisation,
      raised,
      lowered,
      leads: this.#leads,
    }));
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** One step for every rule. Steps never overlap, even if one takes longer than a second. */
  async step(): Promise<void> {
    if (this.#isStepping) return;
    this.#isStepping = true;
    const rules = this.#rules;
    const nowMs = this.#options.now();
    const wanted = rules.map((adaptive) => {
      // Without the store, no instance knows what the others measure.
      adaptive.utilisation = this.#isAway ? undefined : this.#measure(adaptive);
      return adaptive.controller.next(adaptive.limit, adaptive.utilisation, nowMs);
    });
    const agreed = await this.#share(rules, wanted);
    this.#isStepping = false;
    // If the rules were replaced meanwhile, the new ones took over these numbers; the next step moves them.
    if (rules !== this.#rules) return;
    const alone = agreed === undefined && this.#isAway;
    for (const [i, adaptive] of rules.entries()) this.#move(adaptive, agreed?.[i] ?? wanted[i]!, alone);
  }

  /** The limits that the fleet agreed on. Undefined if the store is not shared, or does not answer. */
  async #share(
    rules: readonly Adaptive[],
    wanted: readonly number[],
  ): Promise<readonly (number | undefined)[] | undefined> {
    const { store, instance } = this.#options;
    if (store.shareLimits === undefined) {
      this.#leads = true;
      return undefined;
    }
    const limits = rules.map(({ rule }, i) => ({ rule: rule.id, limit: wanted[i]! }));
    try {
      const shared = await store.shareLimits({ instance, leadsMs: LEADS_MS, limits });
      this.#leads = shared.leads;
      this.#isAway = false;
      return shared.limits;
    } catch {
      this.#leads = false;
      const wasAway = this.#isAway;
      this.#isAway = true;
      return wasAway ? undefined : rules.map(({ limit }) => limit);
    }
  }

  #move(adaptive: Adaptive, to: number, alone: boolean): void {
    const { rule, limit: from } = adaptive;
    const { min, max } = rule.adapt;
    adaptive.limit = Math.min(max, Math.max(min, to));
    const [before, after] = [Math.round(from), Math.round(adaptive.limit)];
    if (before === after) return;
    if (after > before) adaptive.raised++;
    else adaptive.lowered++;
    apply(adaptive);
    const { utilisation } = adaptive;
    this.#options.onMove({ rule: rule.id, from: before, to: after, utilisation, leads: this.#leads, alone });
  }

  #measure({ rule }: Adaptive): number | undefined {
    let highest: number | undefined;
    for (const signal of [rule.adapt.signal].flat()) {
      const utilisation = this.#options.utilisationOf(signal);
      if (utilisation !== undefined && (highest === undefined || utilisation > highest)) highest = utilisation;
    }
    return highest;
  }

  #adaptive(rule: Adaptive["rule"], book: RuleBook, before: Adaptive | undefined): Adaptive {
    const { min, max, target } = rule.adapt;
    const isSame = before !== undefined && before.rule.limit === rule.limit;
    return {
      rule,
      book,
      plans: before?.book === book ? before.plans : book.plansOf(rule.id),
      controller: new LimitController({ limit: rule.limit, min, max, target }, this.#options.now()),
      limit: isSame ? Math.min(max, Math.max(min, before.limit)) : rule.limit,
      utilisation: undefined,
      raised: before?.raised ?? 0,
      lowered: before?.lowered ?? 0,
    };
  }
}

function isAdaptive(rule: Rule): rule is Adaptive["rule"] {
  return rule.adapt !== undefined && rule.mode !== "off";
}

/** Scales overrides and variants in proportion. Decisions in flight keep the plans that they started with. */
function apply({ rule, book, plans, limit }: Adaptive): void {
  const share = Math.round(limit) / rule.limit;
  book.replacePlans(
    rule.id,
    plans.map((own) => ({ ...own, policy: scalePolicy(own.policy, share) })),
  );
}
