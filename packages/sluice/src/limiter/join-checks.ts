/**
 * Joins the checks of several attribute sets into those of one request.
 * Two sets may lead to the same counter: then it is one check at the sum of their costs, for a counter that is looked at twice
 * before it is charged would let both pass where only one fits. Pure.
 */
import type { Check } from "../check.js";

/** `places[part][n]`: where the n-th check of a part stands in the joined list. */
export function joinChecks(parts: readonly (readonly Check[])[]): { checks: Check[]; places: number[][] } {
  const checks: Check[] = [];
  const byKey = new Map<string, number>();
  const places = parts.map((part) => {
    const placed: number[] = [];
    for (const check of part) {
      // A charge beside a check stays apart: it counts even where the check is refused.
      const name = check.charge === true ? `+${check.key}` : check.key;
      const at = byKey.get(name);
      if (at === undefined) {
        byKey.set(name, checks.length);
        // A candidate stands behind its live check, so that one's place is known already.
        placed.push(checks.push(check.live < 0 ? check : { ...check, live: placed[check.live]! }) - 1);
      } else {
        checks[at] = { ...checks[at]!, cost: checks[at]!.cost + check.cost };
        placed.push(at);
      }
    }
    return placed;
  });
  return { checks, places };
}
