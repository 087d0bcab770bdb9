/** Learned costs by class of keys, in the memory store: what learn.lua keeps in Redis. Bounded in number. */
import { addCosts, type CostWeights } from "../../algorithms/cost-histogram.js";

const NO_COSTS: CostWeights = new Map();
/** Rules are few, and each has few classes of keys. */
const MOST_CLASSES = 10_000;

export class MemoryCosts {
  readonly #byName = new Map<string, CostWeights>();

  /** Adds costs to a class, and returns its totals. */
  learn(name: string, costs: CostWeights): CostWeights {
    const learned = addCosts(this.#byName.get(name) ?? NO_COSTS, costs);
    if (this.#byName.size >= MOST_CLASSES && !this.#byName.has(name)) this.#byName.clear();
    this.#byName.set(name, learned);
    return learned;
  }
}
