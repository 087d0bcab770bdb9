/**
 * The real costs of requests as a log histogram: eight buckets per octave, so that a quantile is accurate to a few percent, in a few dozen
 * numbers. It decays by halving: the last one or two thousand costs count. Twin: learn.lua. In: costs. Out: their quantile. Pure.
 */

/** Weight by bucket. */
export type CostWeights = ReadonlyMap<number, number>;

const BUCKETS_PER_OCTAVE = 8;
/** Weights are halved when their sum exceeds this. */
export const MOST_WEIGHT = 2_000;
/** A bucket with less weight is dropped. */
export const LEAST_WEIGHT = 0.1;
/** With fewer costs than this, a quantile would be a guess. */
const FEWEST_COSTS = 20;
/** The prior counts as this many requests at first, and as none once this many are known. */
const PRIOR_WEIGHT = 40;
const PRIOR_UNTIL = 500;

/** A cost of 0 has its own bucket, below that of 1. */
export function bucketOf(cost: number): number {
  return cost < 1 ? -1 : Math.floor(Math.log2(cost) * BUCKETS_PER_OCTAVE);
}

function lowerEnd(bucket: number): number {
  return bucket < 0 ? 0 : 2 ** (bucket / BUCKETS_PER_OCTAVE);
}

/** Merges both histograms, and halves the weights if they are too large. */
export function addCosts(known: CostWeights, added: CostWeights): Map<number, number> {
  const sum = new Map(known);
  for (const [bucket, weight] of added) sum.set(bucket, (sum.get(bucket) ?? 0) + weight);
  while (weightOf(sum) > MOST_WEIGHT) {
    for (const [bucket, weight] of sum) {
      if (weight / 2 < LEAST_WEIGHT) sum.delete(bucket);
      else sum.set(bucket, weight / 2);
    }
  }
  return sum;
}

export function weightOf(weights: CostWeights): number {
  let sum = 0;
  for (const weight of weights.values()) sum += weight;
  return sum;
}

/**
 * The cost that this share of the requests did not exceed, interpolated within its bucket; undefined while too little is known. `prior`:
 * the expected cost, if any, which counts as some of the requests until enough of them are known. Cheap requests end first: without a
 * prior, the first to end would make the others look cheap, and too many would be admitted.
 */
export function quantileOf(known: CostWeights, quantile: number, prior: number | undefined): number | undefined {
  const knownWeight = weightOf(known);
  if (knownWeight < FEWEST_COSTS) return undefined;
  const priorWeight = prior === undefined ? 0 : Math.max(0, PRIOR_WEIGHT * (1 - knownWeight / PRIOR_UNTIL));
  const weights = new Map(known);
  if (prior !== undefined) weights.set(bucketOf(prior), (weights.get(bucketOf(prior)) ?? 0) + priorWeight);
  const total = knownWeight + priorWeight;
  const wanted = total * quantile;
  let below = 0;
  for (const [bucket, weight] of [...weights].sort(([a], [b]) => a - b)) {
    if (below + weight >= wanted) {
      const share = (wanted - below) / weight;
      const from = lowerEnd(bucket);
      return Math.ceil(from + (lowerEnd(bucket + 1) - from) * share);
    }
    below += weight;
  }
  return undefined;
}
