/** Converts the counts of steps to rates. The current step is divided by its covered part; uncovered steps are unknown. Pure. */

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;

export function stepRates(
  values: readonly (number | null)[],
  steps: readonly { readonly coveredMs: number }[],
  everyMs: number,
): (number | null)[] {
  return values.map((value, i) => {
    const coveredMs = steps[i]?.coveredMs ?? 0;
    return value === null || coveredMs === 0 ? null : (value * everyMs) / coveredMs;
  });
}
