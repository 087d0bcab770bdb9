/**
 * Estimates what requests will cost, from what the requests declare and from what requests of the same class really cost. In: checks of
 * rules with `estimate`; settled costs. Out: the same checks with the units to hold.
 *
 * Learned costs are in the store, shared by all instances. An instance counts its own costs and sends them in batches; the reply is what
 * all instances have learned. So a check makes no call, and a settlement costs a tenth of a call or less.
 */
import { addCosts, bucketOf, type CostWeights, quantileOf, weightOf } from "../algorithms/cost-histogram.js";
import { capacityOf } from "../algorithms/policy.js";
import { MOST_ENTRIES } from "../algorithms/rolling-window.js";
import type { Check, CheckPlan } from "../check.js";
import type { Store } from "../store/store.js";
import { quantileToHold, USUAL_QUANTILE } from "./quantile-to-hold.js";

/** A batch is sent when it has this many costs, but at most once a second; or when it is this old. */
const COSTS_PER_BATCH = 20;
const SHORTEST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;
/** While little is known, every cost is worth sharing. */
const FEW_COSTS = 100;
const EARLY_PAUSE_MS = 10_000;
/** Bound on the classes of keys cached here: rules are few, and each has few classes. */
const MOST_CLASSES = 10_000;

interface Learned {
  readonly name: string;
  /** The store's last answer, plus what this instance has settled since. */
  known: CostWeights;
  /** Total weight of `known`. */
  weight: number;
  unsent: Map<number, number>;
  unsentCount: number;
  /** When the store was last asked; -Infinity before. */
  askedMonotonicMs: number;
  isAsking: boolean;
  /** Cached by quantile, until more is learned. */
  readonly costs: Map<number, number | undefined>;
}

/** What requests of one class of keys cost, according to the last one or two thousand of them. */
export interface LearnedCosts {
  /** "" for the rule's keys, otherwise those of an override. */
  readonly keyClass: string;
  /** How many settled costs it is based on. */
  readonly requests: number;
  readonly quantile: number;
  readonly default: number;
  /**
   * What is held (`default` still counts in it while few costs are known), and what was really settled; absent while too little is known.
   */
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

  /** Sets the cost of checks with an unknown cost to the units to hold. */
  price(checks: readonly Check[]): readonly Check[] {
    return repriced(checks, ({ plan, held }) => this.unitsToHold(plan, held!.said));
  }

  /** The same for a part of a request, which may share a counter with another part: `bounded` applies after they are joined. */
  priceOfPart(checks: readonly Check[]): readonly Check[] {
    return repriced(checks, ({ plan, held }) => this.#wanted(plan, held!.said));
  }

  unitsToHold(plan: CheckPlan, said: number | undefined): number {
    return mostToBear(plan, this.#wanted(plan, said));
  }

  #wanted(plan: CheckPlan, said: number | undefined): number {
    const learned = this.learnedOf(plan);
    return said === undefined ? (learned ?? plan.estimate!.default) : Math.min(said, learned ?? said);
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

  /** What all instances have learned about a class, read from the store, plus what this instance has not sent yet. */
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

  /** Records the cost of a request of this class. */
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
      // Kept for the next batch. Costs lost together with this process do not matter.
      for (const [bucket, weight] of unsent) learned.unsent.set(bucket, (learned.unsent.get(bucket) ?? 0) + weight);
      learned.unsentCount += unsentCount;
    } finally {
      learned.isAsking = false;
    }
  }
}

/** Bounds the joined parts of a request: what is held in each counter in total, and the costs that the parts declare. */
export function bounded(checks: readonly Check[]): readonly Check[] {
  return repriced(checks, ({ plan, cost, held }) => Math.max(held!.told ?? 0, mostToBear(plan, cost)));
}

/** Never more than the counter can hold: a first request must not be refused because of its estimate. */
function mostToBear({ policy }: CheckPlan, units: number): number {
  const capacity = capacityOf(policy);
  const most = policy.stored === "rolling-window" ? Math.min(capacity, MOST_ENTRIES) : capacity;
  return Math.max(1, Math.min(units, most));
}

function repriced(checks: readonly Check[], costOf: (check: Check) => number): readonly Check[] {
  let priced: Check[] | undefined;
  for (let i = 0; i < checks.length; i++) {
    const check = checks[i]!;
    if (check.held === undefined) continue;
    priced ??= [...checks];
    priced[i] = { ...check, cost: costOf(check) };
  }
  return priced ?? checks;
}

/** The rule's own quantile, or the one that suits its limit. */
function quantileFor({ estimate, policy }: CheckPlan, costAt: (quantile: number) => number | undefined): number {
  if (estimate!.quantile !== undefined) return estimate!.quantile;
  const usualCost = costAt(USUAL_QUANTILE);
  return usualCost === undefined ? USUAL_QUANTILE : quantileToHold(policy, usualCost);
}
