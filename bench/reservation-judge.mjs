/**
 * How far use went beyond a limit: in the worst window, or for a bucket, which starts full, at the worst instant. Pure.
 * In: uses in the order of their times, or admissions and the speed at which they are used. Out: units beyond the limit, below 0 for less.
 */

/** By Redis's clock. @typedef {{ atMs: number, tokens: number }} Use */
/** @typedef {"token-bucket" | "gcra" | "fixed-window" | "rolling-window" | "sliding-counter"} Algorithm */
/** @typedef {{ algorithm: Algorithm, limit: number, windowMs: number }} Judged */

/** Steps of a window, where use is spread over time. */
const STEPS = 600;

/** Each use counts at its instant. @param {readonly Use[]} uses @param {Judged} judged */
export function worstOver(uses, { algorithm, limit, windowMs }) {
  let [worst, sum, first, lastMs] = [Number.NEGATIVE_INFINITY, 0, 0, 0];
  for (const { atMs, tokens } of uses) {
    if (algorithm === "token-bucket" || algorithm === "gcra") {
      sum = Math.max(0, sum - ((atMs - lastMs) * limit) / windowMs);
    } else if (algorithm === "fixed-window") {
      if (Math.floor(atMs / windowMs) !== Math.floor(lastMs / windowMs)) sum = 0;
    } else {
      for (let oldest = uses[first]; oldest && oldest.atMs <= atMs - windowMs; oldest = uses[++first])
        sum -= oldest.tokens;
    }
    lastMs = atMs;
    sum += tokens;
    worst = Math.max(worst, sum - limit);
  }
  return worst;
}

/** Each token counts when it is produced: evenly, from its request's admission on. @param {readonly Use[]} admissions @param {Judged & { tokensPerMs: number }} judged */
export function worstProduced(admissions, { tokensPerMs, ...judged }) {
  const stepMs = judged.windowMs / STEPS;
  /** @type {Map<number, number>} */
  const byStep = new Map();
  for (const { atMs, tokens } of admissions) {
    const endMs = atMs + tokens / tokensPerMs;
    for (let step = Math.floor(atMs / stepMs); step * stepMs < endMs; step++) {
      const ms = Math.min(endMs, (step + 1) * stepMs) - Math.max(atMs, step * stepMs);
      byStep.set(step, (byStep.get(step) ?? 0) + ms * tokensPerMs);
    }
  }
  const steps = [...byStep].sort(([a], [b]) => a - b);
  return worstOver(
    steps.map(([step, tokens]) => ({ atMs: step * stepMs, tokens })),
    judged,
  );
}
