/**
 * How close to a limit any policy could come that never cuts a stream and does not know how long the next one will be. Lengths are drawn
 * from the quantiles of a trace.
 *
 * `leastBeyond` is a bound, by dynamic programming, where a request counts in the window that admitted it. In a window the requests admitted
 * are a sequence of independent costs with a stopping rule; so are those of any policy for a rolling window, between two instants a window
 * apart. The policy of the bound knows what every request costs as soon as it is admitted, and always has a next one to admit: no server has
 * as much, and no order of a queue adds to it, because what waits is as unknown. As every limiter does, it refuses once the limit is reached;
 * one that filled a window twice, now and then, would have the utilisation with fewer windows beyond the limit. Requests that name different
 * bounds would tell it more: here all name the same.
 *
 * `informed` is a policy, seeded and in virtual time: it knows the distribution of lengths and how far each stream is, and admits while what
 * it expects of all of them, and so many standard deviations, is within the limit and the hundredth that may pass it. `metered`
 * (reservation-metered.mjs) is the same where a token counts when it is produced, and not when its request was admitted.
 */
import { metered } from "./reservation-metered.mjs";

const WINDOW_S = 60;
const TOKENS_PER_S = 50;
const OVERLOAD = 2;
const WARM_UP_MINUTES = 3;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9];
/** Of the limit, which may pass it. */
const TOLERANCE = 0.01;
/** Evenly spaced points of the distribution. */
const POINTS = 20_000;

/** @param {readonly number[]} quantiles of the lengths, evenly spaced */
export function frontier(quantiles) {
  const lengths = drawn(quantiles);
  return {
    bounds: [0.95, 0.93, 0.9].map((utilisation) => {
      const limit = 5_000;
      return { limit, utilisation, share: leastBeyond(lengths, { limit, utilisation }) };
    }),
    /** The most that can be used where no window may pass the limit by more than the tolerance. */
    never: { limit: 5_000, utilisation: mostWithoutRisk(lengths, 5_000) },
    metered: [50_000, 5_000].map((limit) => ({
      limit,
      margins: [1.5, 2.5, 3.5].map((deviations) =>
        metered(lengths, { limit, deviations, generators: SEEDS.map(generator) }),
      ),
    })),
    informed: ["fixed-window", "rolling-window"].flatMap((algorithm) =>
      [50_000, 5_000].map((limit) => ({
        algorithm,
        limit,
        margins: [2.5, 3, 3.5].map((deviations) => informed(lengths, { algorithm, limit, deviations })),
      })),
    ),
  };
}

/** All lengths alike likely: between the quantiles of the trace, as the benchmarks draw them. @param {readonly number[]} quantiles */
export function drawn(quantiles) {
  return Array.from({ length: POINTS }, (_, i) => {
    const at = ((i + 0.5) / POINTS) * (quantiles.length - 1);
    const below = Math.floor(at);
    const [from = 0, to = 0] = [quantiles[below], quantiles[below + 1]];
    return Math.round(from + (to - from) * (at - below));
  });
}

/**
 * The least share of windows that pass the limit by more than the tolerance, under any policy with this utilisation. By duality: for every
 * price of such a window, utilisation - price * share is at most what the best policy earns.
 * @param {readonly number[]} lengths @param {{ limit: number, utilisation: number }} wanted
 */
export function leastBeyond(lengths, { limit, utilisation }) {
  let least = 0;
  for (let price = 0.05; price < 40; price *= 1.25) {
    least = Math.max(least, (utilisation - mostEarned(lengths, limit, price)) / price);
  }
  return least;
}

/** @param {readonly number[]} lengths @param {number} limit */
export function mostWithoutRisk(lengths, limit) {
  return mostEarned(lengths, limit, Number.POSITIVE_INFINITY);
}

/**
 * What the best policy earns in a window: the part of the limit that is used, less the price if that is beyond the tolerance.
 * @param {readonly number[]} lengths @param {number} limit @param {number} price
 */
function mostEarned(lengths, limit, price) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const tokens of lengths) counts.set(tokens, (counts.get(tokens) ?? 0) + 1);
  const costs = Int32Array.from(counts.keys());
  const shares = Float64Array.from(counts.values(), (count) => count / lengths.length);
  /** By the room that is left. */
  const earned = new Float64Array(limit + 1);
  for (let room = 0; room <= limit; room++) {
    let goesOn = 0;
    for (let i = 0; i < costs.length; i++) {
      const left = room - (costs[i] ?? 0);
      const isBeyond = -left > limit * TOLERANCE;
      const earns = left >= 0 ? (earned[left] ?? 0) : (limit - left) / limit - (isBeyond ? price : 0);
      goesOn += (shares[i] ?? 0) * earns;
    }
    earned[room] = Math.max((limit - room) / limit, goesOn);
  }
  return earned[limit] ?? 0;
}

/** @param {readonly number[]} lengths @param {{ algorithm: string, limit: number, deviations: number }} options */
function informed(lengths, options) {
  const runs = SEEDS.map((seed) => play(lengths, { ...options, seed }));
  return {
    deviations: options.deviations,
    over: Math.max(...runs.map(({ over }) => over)),
    utilisation: runs.reduce((sum, { utilisation }) => sum + utilisation, 0) / runs.length,
  };
}

/** @param {readonly number[]} lengths @param {{ algorithm: string, limit: number, deviations: number, seed: number }} options */
function play(lengths, { algorithm, limit, deviations, seed }) {
  const random = generator(seed);
  const beyond = momentsBeyond(lengths);
  const next = beyond(0);
  const minutes = limit < 10_000 ? 60 : 12;
  /** @type {{ atS: number, tokens: number, endS: number }[]} */
  let inWindow = [];
  let [worst, used] = [0, 0];
  for (let nowS = 0; ; ) {
    nowS -= Math.log(1 - random()) / ((OVERLOAD * limit) / next.mean / WINDOW_S);
    if (nowS >= minutes * WINDOW_S) break;
    const fromS = algorithm === "fixed-window" ? nowS - (nowS % WINDOW_S) : nowS - WINDOW_S;
    inWindow = inWindow.filter(({ atS }) => atS >= fromS);
    let [mean, variance, sum] = [next.mean, next.variance, 0];
    for (const { atS, tokens, endS } of inWindow) {
      sum += tokens;
      const known = endS <= nowS ? { mean: tokens, variance: 0 } : beyond((nowS - atS) * TOKENS_PER_S);
      mean += known.mean;
      variance += known.variance;
    }
    const tokens = lengths[Math.floor(random() * lengths.length)] ?? 0;
    if (mean + deviations * Math.sqrt(variance) > limit * (1 + TOLERANCE)) continue;
    inWindow.push({ atS: nowS, tokens, endS: nowS + tokens / TOKENS_PER_S });
    worst = Math.max(worst, sum + tokens - limit);
    if (nowS >= WARM_UP_MINUTES * WINDOW_S) used += tokens;
  }
  return { over: worst / limit, utilisation: used / (limit * (minutes - WARM_UP_MINUTES)) };
}

/** Mean and variance of the length of a stream that has produced so many tokens. @param {readonly number[]} lengths in order */
function momentsBeyond(lengths) {
  const longest = lengths.at(-1) ?? 0;
  /** By the tokens produced. @type {{ mean: number, variance: number }[]} */
  const moments = [];
  let [count, sum, squares, at] = [0, 0, 0, lengths.length - 1];
  for (let produced = longest; produced >= 0; produced--) {
    for (; at >= 0 && (lengths[at] ?? 0) > produced; at--) {
      const tokens = lengths[at] ?? 0;
      count++;
      sum += tokens;
      squares += tokens * tokens;
    }
    const mean = count === 0 ? produced : sum / count;
    moments[produced] = { mean, variance: count === 0 ? 0 : Math.max(0, squares / count - mean * mean) };
  }
  return (/** @type {number} */ produced) =>
    moments[Math.min(longest, Math.floor(produced))] ?? { mean: produced, variance: 0 };
}

/** mulberry32: small, seeded, good enough for arrivals. @param {number} seed */
export function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
