/**
 * Counts of steps as rates. The step that lasts is divided by the part of it that was counted; what was not counted is unknown. Pure.
 */

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
