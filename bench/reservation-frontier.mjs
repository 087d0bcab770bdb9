/**
 * How close to a limit a policy could come that never cuts a stream and does not know how long the next one will be: it knows the
 * distribution of lengths and how far each stream is, and admits while what it expects of all of them, and a margin, fits. What it does not
 * know passes the limit, or lies idle; the margin moves one against the other. In virtual time, seeded.
 */

const WINDOW_S = 60;
const TOKENS_PER_S = 50;
const OVERLOAD = 2;
const WARM_UP_MINUTES = 3;
const SEEDS = [1, 2, 3];

/** @param {readonly number[]} quantiles of the lengths, evenly spaced */
export function frontier(quantiles) {
  return ["fixed-window", "rolling-window"].flatMap((algorithm) =>
    [50_000, 5_000].map((limit) => ({
      algorithm,
      limit,
      margins: [0, 0.02, 0.05, 0.12].map((margin) => {
        const runs = SEEDS.map((seed) => play({ algorithm, limit, margin, seed, quantiles }));
        return {
          margin,
          over: Math.max(...runs.map(({ over }) => over)),
          utilisation: runs.reduce((sum, { utilisation }) => sum + utilisation, 0) / runs.length,
        };
      }),
    })),
  );
}

/** @param {{ algorithm: string, limit: number, margin: number, seed: number, quantiles: readonly number[] }} options */
function play({ algorithm, limit, margin, seed, quantiles }) {
  const random = generator(seed);
  const expectedBeyond = expectation(quantiles);
  const mean = expectedBeyond(0);
  const minutes = limit < 10_000 ? 60 : 12;
  /** @type {{ atS: number, tokens: number, endS: number }[]} */
  let inWindow = [];
  let [worst, used] = [0, 0];
  for (let nowS = 0; ; ) {
    nowS -= Math.log(1 - random()) / ((OVERLOAD * limit) / mean / WINDOW_S);
    if (nowS >= minutes * WINDOW_S) break;
    const fromS = algorithm === "fixed-window" ? nowS - (nowS % WINDOW_S) : nowS - WINDOW_S;
    inWindow = inWindow.filter(({ atS }) => atS >= fromS);
    const expected = inWindow.reduce((sum, { atS, tokens, endS }) => {
      return sum + (endS <= nowS ? tokens : expectedBeyond((nowS - atS) * TOKENS_PER_S));
    }, 0);
    const tokens = quantiles[Math.floor(random() * quantiles.length)] ?? 0;
    if (expected + mean > limit * (1 - margin)) continue;
    inWindow.push({ atS: nowS, tokens, endS: nowS + tokens / TOKENS_PER_S });
    worst = Math.max(worst, inWindow.reduce((sum, stream) => sum + stream.tokens, 0) - limit);
    if (nowS >= WARM_UP_MINUTES * WINDOW_S) used += tokens;
  }
  return { over: worst / limit, utilisation: used / (limit * (minutes - WARM_UP_MINUTES)) };
}

/** The expected length of a stream that has produced so many tokens. @param {readonly number[]} sorted */
function expectation(sorted) {
  /** @type {number[]} */
  const sums = [0];
  for (const tokens of sorted) sums.push((sums.at(-1) ?? 0) + tokens);
  const all = sums.at(-1) ?? 0;
  return (/** @type {number} */ produced) => {
    let first = 0;
    while (first < sorted.length - 1 && (sorted[first] ?? 0) <= produced) first++;
    return (all - (sums[first] ?? 0)) / (sorted.length - first);
  };
}

/** mulberry32: small, seeded, good enough for arrivals. @param {number} seed */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
