/**
 * Makes a failing run small: leaves out steps of the plan, by halves, then quarters, as long as the run still fails (delta debugging).
 * What is left keeps its fates: each step draws from a generator of its own.
 */
import { type RunOptions, type RunResult, runWorld } from "./world.js";

const MOST_RUNS = 400;

export async function shrink(options: RunOptions, steps: number): Promise<{ keep: number[]; result: RunResult }> {
  let keep = options.keep === undefined ? Array.from({ length: steps }, (_, i) => i) : [...options.keep];
  let result = await runWorld({ ...options, keep: new Set(keep) });
  let runs = 1;
  for (let pieces = 2; keep.length > 1 && pieces <= keep.length && runs < MOST_RUNS; ) {
    const size = Math.ceil(keep.length / pieces);
    let smaller: number[] | undefined;
    for (let from = 0; from < keep.length && runs < MOST_RUNS; from += size) {
      const rest = [...keep.slice(0, from), ...keep.slice(from + size)];
      const tried = await runWorld({ ...options, keep: new Set(rest) });
      runs++;
      if (tried.violation === undefined) continue;
      smaller = rest;
      result = tried;
      break;
    }
    if (smaller === undefined) pieces = Math.min(pieces * 2, Math.max(pieces + 1, keep.length));
    else {
      keep = smaller;
      pieces = Math.max(2, pieces - 1);
    }
  }
  return { keep, result };
}
