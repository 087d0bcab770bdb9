/**
 * Which quantile of the costs a check holds, where its rule names none.
 * In: the rule's limit, and what nearly all of its requests cost at most. Out: a share. Pure.
 *
 * A bucket gives back what it held too much, and loses nothing by it; a fixed window loses it once, at its end. In a rolling window the
 * excess of all requests in flight lies idle all the time. There less is held of each where many fit, because what some cost beyond it is
 * made up by others. Below the least quantile it does not pay: each request that costs more extends its reservation, and that is a call to
 * the store. The curve was fitted in the world (test/world/reservation-load.ts): the steepest that passed no limit by more than 1 %.
 */
import type { Policy } from "../algorithms/policy.js";

export const USUAL_QUANTILE = 0.97;
const LEAST_QUANTILE = 0.8;
/** Where no more requests than so many fill the limit, one that costs more than was held is a large part of it. */
const FEW_REQUESTS = 10;
const STEEPNESS = 0.8;

/** `usualCost`: the usual quantile of what requests cost. */
export function quantileToHold({ stored, limit }: Policy, usualCost: number): number {
  if (stored !== "rolling-window" && stored !== "rolling-window-packed") return USUAL_QUANTILE;
  const fitting = limit / Math.max(1, usualCost);
  const beyond = (1 - USUAL_QUANTILE) * Math.max(1, fitting / FEW_REQUESTS) ** STEEPNESS;
  // In hundredths: few different ones, each computed once for what is known.
  return Math.max(LEAST_QUANTILE, Math.round(100 * (1 - beyond)) / 100);
}
