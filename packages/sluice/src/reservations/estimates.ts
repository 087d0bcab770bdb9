/**
 * Estimates what requests will cost, from what the requests say and from what requests of the same class really cost.
 * In: checks of rules with `estimate`; costs that were settled. Out: the same checks with the units to hold.
 *
 * What was learned lies in the store, shared by all instances. An instance counts its own costs and sends them in batches; the reply is
 * what all have learned. So a check asks nobody, and a settlement costs a tenth of a call, or less.
 */
import { addCosts, bucketOf, type CostWeights, quantileOf, weightOf } from "../algorithms/cost-histogram.js";
import { capacityOf } from "../algorithms/policy.js";
import { MOST_ENTRIES } from "../algorithms/rolling-window.js";
import type { Check, CheckPlan } from "../check.js";
import type { Store } from "../store/store.js";
import { quantileToHold, USUAL_QUANTILE } from "./quantile-to-hold.js";

/** A batch is sent when it has so many costs, but not more often than once a second; or when it is so old. */
const COSTS_PER_BATCH = 20;
const SHORTEST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;
/** While little is known, each cost is worth sharing. */
const FEW_COSTS = 100;
const EARLY_PAUSE_MS = 10_000;
/** Classes of keys that are remembered here: rules are few, and each has few. */
const MOST_CLASSES = 10_000;

interface Learned {
  readonly name: string;
  /** As the store returned it last, and what this instance has settled since. */
  known: CostWeights;
  /** Of `known`, in all. */
  weight: number;
  unsent: Map<number, number>;
  unsentCount: number;
  /** When the store was asked last; -Infinity before. */
  askedMonotonicMs: number;
  isAsking: boolean;
  /** By the quantile, until more is learned. */
  readonly costs: Map<number, number | undefined>;
}

/** What requests of one class of keys cost, as the last one or two thousand of them tell. */
export interface LearnedCosts {
  /** "": the rule's keys; else those of an override. */
  readonly keyClass: string;
  /** How many settled costs it rests on. */
  readonly requests: number;
  readonly quantile: number;
  readonly default: number;
  /** What is held, in which `default` still counts while few are known, and what was really settled; absent while too little is known. */
  readonly learned?: number;
  readonly p50?: number;
  readonly p90?: number;
  readonly p99?: number;
}

export class Estimates {
  readonly #store: Pick<Store, "learn">;
  readonly #byName = new Map<string, Learned>();

  constructor(store: Pick<Store, "learn">) {
    this.#store = store;
  }

  /** The checks, with the units to hold as the cost of those whose cost is not known. */
  price(checks: readonly Check[]): readonly Check[] {
    let priced: Check[] | undefined;
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i]!;
      if (check.held === undefined) continue;
      priced ??= [...checks];
      priced[i] = { ...check, cost: this.unitsToHold(check.plan, check.held.said) };
    }
    return priced ?? checks;
  }

  /** Never above what the counter could bear: a first request is not refused for its estimate. */
  unitsToHold(plan: CheckPlan, said: number | undefined): number {
    const estimate = plan.estimate!;
    const learned = this.learnedOf(plan);
    const wanted = said === undefined ? (learned ?? estimate.default) : Math.min(said, learned ?? said);
    const capacity = capacityOf(plan.policy);
    const most = plan.policy.stored === "rolling-window" ? Math.min(capacity, MOST_ENTRIES) : capacity;
    return Math.max(1, Math.min(wanted, most));
  }

  /** The quantile of what requests of this class cost, if enough is known. */
  learnedOf(plan: CheckPlan): number | undefined {
    const { rule, estimate } = plan;
    const { keyClass, default: prior } = estimate!;
    const learned = this.#learned(rule, keyClass);
    this.#askLater(learned);
    const costAt = (quantile: number): number | undefined => {
      let cost = learned.costs.get(quantile);
      if (cost !== undefined || learned.costs.has(quantile)) return cost;
      cost = quantileOf(learned.known, quantile, prior);
      learned.costs.set(quantile, cost);
      return cost;
    };
    return costAt(quantileFor(plan, costAt));
  }

  /** What all instances have learned of a class, asked of the store; what this one has not sent yet is added. */
  async read(plan: CheckPlan): Promise<LearnedCosts> {
    const { rule, estimate } = plan;
    const { keyClass, default: prior } = estimate!;
    const learned = this.#learned(rule, keyClass);
    const known = addCosts(await this.#store.learn(learned.name, new Map()), learned.unsent);
    const real = (share: number): number | undefined => quantileOf(known, share, undefined);
    const costAt = (share: number): number | undefined => quantileOf(known, share, prior);
    const quantile = quantileFor(plan, costAt);
    const [p50, p90, p99, held] = [real(0.5), real(0.9), real(0.99), costAt(quantile)];
    return {
      keyClass,
      requests: Math.round(weightOf(known)),
      quantile,
      default: prior,
      ...(held !== undefined && { p50: p50!, p90: p90!, p99: p99!, learned: held }),
    };
  }

  /** A request of this class cost so much. */
  add(rule: string, keyClass: string, cost: number): void {
    const learned = this.#learned(rule, keyClass);
    const bucket = bucketOf(cost);
    learned.unsent.set(bucket, (learned.unsent.get(bucket) ?? 0) + 1);
    learned.unsentCount++;
    this.#know(learned, addCosts(learned.known, new Map([[bucket, 1]])));
    this.#askLater(learned);
  }

  /** Sends what is left. */
  async close(): Promise<void> {
    await Promise.all(
      [...this.#byName.values()].filter(({ unsentCount }) => unsentCount > 0).map((left) => this.#ask(left)),
    );
  }

  #learned(rule: string, keyClass: string): Learned {
    const name = keyClass === "" ? rule : `${rule}:${keyClass}`;
    let learned = this.#byName.get(name);
    if (learned === undefined) {
      if (this.#byName.size >= MOST_CLASSES) this.#byName.clear();
      learned = {
        name,
        known: new Map(),
        weight: 0,
        unsent: new Map(),
        unsentCount: 0,
        askedMonotonicMs: Number.NEGATIVE_INFINITY,
        isAsking: false,
        costs: new Map(),
      };
      this.#byName.set(name, learned);
    }
    return learned;
  }

  #know(learned: Learned, known: CostWeights): void {
    learned.known = known;
    learned.weight = weightOf(known);
    learned.costs.clear();
  }

  #askLater(learned: Learned): void {
    if (learned.isAsking) return;
    const sinceMs = performance.now() - learned.askedMonotonicMs;
    const perBatch = learned.weight < FEW_COSTS ? 1 : COSTS_PER_BATCH;
    const pauseMs = learned.weight < FEW_COSTS ? EARLY_PAUSE_MS : SHORTEST_PAUSE_MS;
    const isDue = sinceMs >= (learned.unsentCount >= perBatch ? pauseMs : LONGEST_PAUSE_MS);
    if (isDue) void this.#ask(learned);
  }

  async #ask(learned: Learned): Promise<void> {
    const { unsent, unsentCount } = learned;
    learned.isAsking = true;
    learned.askedMonotonicMs = performance.now();
    learned.unsent = new Map();
    learned.unsentCount = 0;
    try {
      const known = await this.#store.learn(learned.name, unsent);
      this.#know(learned, addCosts(known, learned.unsent));
    } catch {
      // Kept for the next batch. What was learned and is lost with this process is not missed.
      for (const [bucket, weight] of unsent) learned.unsent.set(bucket, (learned.unsent.get(bucket) ?? 0) + weight);
      learned.unsentCount += unsentCount;
    } finally {
      learned.isAsking = false;
    }
  }
}

/** The rule's own, or the one that suits its limit. */
function quantileFor({ estimate, policy }: CheckPlan, costAt: (quantile: number) => number | undefined): number {
  if (estimate!.quantile !== undefined) return estimate!.quantile;
  const usualCost = costAt(USUAL_QUANTILE);
  return usualCost === undefined ? USUAL_QUANTILE : quantileToHold(policy, usualCost);
}
