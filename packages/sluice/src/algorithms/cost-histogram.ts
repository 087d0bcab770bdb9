/**
 * What requests really cost, as a log histogram: eight buckets an octave, so that a quantile is right within some percent, in a few
 * dozen numbers. It decays by halving: the last one or two thousand costs count. Twin: learn.lua.
 * In: costs. Out: their quantile. Pure.
 */

/** Weight by bucket. */
export type CostWeights = ReadonlyMap<number, number>;

const BUCKETS_PER_OCTAVE = 8;
/** The weights are halved where they sum up to more. */
export const MOST_WEIGHT = 2_000;
/** A bucket that weighs less is dropped. */
export const LEAST_WEIGHT = 0.1;
/** Before so many costs a quantile would be a guess. */
const FEWEST_COSTS = 20;

/** A cost of 0 has a bucket of its own, below that of 1. */
export function bucketOf(cost: number): number {
  return cost < 1 ? -1 : Math.floor(Math.log2(cost) * BUCKETS_PER_OCTAVE);
}

function lowerEnd(bucket: number): number {
  return bucket < 0 ? 0 : 2 ** (bucket / BUCKETS_PER_OCTAVE);
}

/** Both histograms as one, halved where that is too heavy. */
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

function weightOf(weights: CostWeights): number {
  let sum = 0;
  for (const weight of weights.values()) sum += weight;
  return sum;
}

/** The cost that this share of the requests did not exceed, interpolated within its bucket; undefined while too little is known. */
export function quantileOf(weights: CostWeights, quantile: number): number | undefined {
  const total = weightOf(weights);
  if (total < FEWEST_COSTS) return undefined;
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
