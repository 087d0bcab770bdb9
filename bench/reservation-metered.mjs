/**
 * A policy for rolling windows in which a token counts when it is produced. It hears of every token at once, knows the distribution of lengths
 * and the speed of streams, and admits while for each of the next seconds what it expects within the window then, and so many standard
 * deviations, is within the limit. Seeded, in virtual time. In: lengths, a limit. Out: use beyond the limit at worst, utilisation.
 *
 * It shows what metering could gain, at one store call a stream and second instead of two a request.
 */
const WINDOW_S = 60;
const TOKENS_PER_S = 50;
const OVERLOAD = 2;
const WARM_UP_MINUTES = 3;
/** Steps of the record of what was produced. */
const PER_S = 10;
/** Streams are told apart by so many tokens. */
const STEP_TOKENS = 10;

/**
 * `generators`: one a run, each from 0 to 1.
 * @param {readonly number[]} lengths in order
 * @param {{ limit: number, deviations: number, generators: readonly (() => number)[] }} options
 */
export function metered(lengths, { limit, deviations, generators }) {
  const moments = futureOf(lengths);
  const runs = generators.map((random) => play(lengths, moments, { limit, deviations, random }));
  return {
    deviations,
    over: Math.max(...runs.map(({ over }) => over)),
    utilisation: runs.reduce((sum, { utilisation }) => sum + utilisation, 0) / runs.length,
  };
}

/**
 * @param {readonly number[]} lengths @param {ReturnType<typeof futureOf>} moments
 * @param {{ limit: number, deviations: number, random: () => number }} options
 */
function play(lengths, { horizonS, momentsAt }, { limit, deviations, random }) {
  const mean = lengths.reduce((sum, tokens) => sum + tokens, 0) / lengths.length;
  const minutes = limit < 10_000 ? 60 : 12;
  /** Tokens by the tenth of a second; those that are to come of streams that run are in it, and not looked at. */
  const produced = new Float64Array((minutes * WINDOW_S + horizonS + 1) * PER_S);
  const sumBefore = new Float64Array(produced.length + 1);
  /** @type {{ atS: number, endS: number }[]} */
  let running = [];
  let [summed, used] = [0, 0];
  for (let nowS = 0; ; ) {
    nowS -= Math.log(1 - random()) / ((OVERLOAD * limit) / mean / WINDOW_S);
    if (nowS >= minutes * WINDOW_S) break;
    const now = Math.floor(nowS * PER_S);
    for (; summed < now; summed++) sumBefore[summed + 1] = (sumBefore[summed] ?? 0) + (produced[summed] ?? 0);
    running = running.filter(({ endS }) => endS > nowS);
    const tokens = lengths[Math.floor(random() * lengths.length)] ?? 0;
    let fits = true;
    for (let aheadS = 1; fits && aheadS <= horizonS; aheadS++) {
      const from = Math.min(now, Math.max(0, Math.floor((nowS + aheadS - WINDOW_S) * PER_S)));
      let { mean: expected, variance } = momentsAt(0, aheadS);
      for (const { atS } of running) {
        const more = momentsAt((nowS - atS) * TOKENS_PER_S, aheadS);
        expected += more.mean;
        variance += more.variance;
      }
      const counted = (sumBefore[now] ?? 0) - (sumBefore[from] ?? 0);
      fits = counted + expected + deviations * Math.sqrt(variance) <= limit;
    }
    if (!fits) continue;
    const endS = nowS + tokens / TOKENS_PER_S;
    running.push({ atS: nowS, endS });
    for (let step = now; step < endS * PER_S; step++) {
      const seconds = Math.min(endS, (step + 1) / PER_S) - Math.max(nowS, step / PER_S);
      if (seconds > 0) produced[step] = (produced[step] ?? 0) + seconds * TOKENS_PER_S;
    }
    if (nowS >= WARM_UP_MINUTES * WINDOW_S) used += tokens;
  }
  return {
    over: worstWindow(produced) / limit - 1,
    utilisation: used / (limit * (minutes - WARM_UP_MINUTES)),
  };
}

/** @param {Float64Array} produced */
function worstWindow(produced) {
  let [worst, sum] = [0, 0];
  for (let step = 0; step < produced.length; step++) {
    sum += (produced[step] ?? 0) - (produced[step - WINDOW_S * PER_S] ?? 0);
    worst = Math.max(worst, sum);
  }
  return worst;
}

/** Mean and variance of what a stream that has produced so many tokens produces within the next seconds. @param {readonly number[]} lengths in order */
function futureOf(lengths) {
  const longest = lengths.at(-1) ?? 0;
  const horizonS = Math.ceil(longest / TOKENS_PER_S);
  /** By steps of tokens produced, then by seconds. @type {{ mean: number, variance: number }[][]} */
  const moments = [];
  for (let from = 0; from <= longest; from += STEP_TOKENS) {
    const left = lengths.filter((tokens) => tokens > from).map((tokens) => tokens - from);
    moments.push(
      Array.from({ length: horizonS + 1 }, (_, aheadS) => {
        let [sum, squares] = [0, 0];
        for (const tokens of left) {
          const more = Math.min(tokens, aheadS * TOKENS_PER_S);
          sum += more;
          squares += more * more;
        }
        const mean = sum / Math.max(1, left.length);
        return { mean, variance: Math.max(0, squares / Math.max(1, left.length) - mean * mean) };
      }),
    );
  }
  const none = { mean: 0, variance: 0 };
  const momentsAt = (/** @type {number} */ tokens, /** @type {number} */ aheadS) =>
    moments[Math.floor(tokens / STEP_TOKENS)]?.[aheadS] ?? none;
  return { horizonS, momentsAt };
}
