/**
 * Which quantile of the costs a check holds if its rule names none. In: the rule's limit, and an upper bound on what nearly all of its
 * requests cost. Out: a fraction. Pure.
 *
 * A bucket gives back what was held in excess and loses nothing; a fixed window loses it once, at its end. In a rolling window, the excess
 * of all requests in flight lies idle all the time. So if many requests fit, less is held for each, because those that cost more are offset
 * by others. Below the least quantile this does not pay off: each request that costs more extends its reservation, and that is a call to
 * the store. The curve was fitted by simulation (test/world/reservation-load.ts): the steepest one that exceeded no limit by more than 1 %.
 */
import type { Policy } from "../algorithms/policy.js";

export const USUAL_QUANTILE = 0.97;
const LEAST_QUANTILE = 0.8;
/** If no more requests than this fill the limit, one that costs more than was held is a large part of it. */
const FEW_REQUESTS = 10;
const STEEPNESS = 0.8;

/** `usualCost`: the usual quantile of what requests cost. */
export function quantileToHold({ stored, limit }: Policy, usualCost: number): number {
  if (stored !== "rolling-window" && stored !== "rolling-window-packed") return USUAL_QUANTILE;
  const fitting = limit / Math.max(1, usualCost);
  const beyond = (1 - USUAL_QUANTILE) * Math.max(1, fitting / FEW_REQUESTS) ** STEEPNESS;
  // In hundredths: few distinct values, each computed once per set of known costs.
  return Math.max(LEAST_QUANTILE, Math.round(100 * (1 - beyond)) / 100);
}
