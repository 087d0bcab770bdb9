/** Units of each step as a rate. The step that lasts is divided by the part of it that was counted; what was not counted is unknown. Pure. */

const MINUTE_MS = 60_000;

export function perMinute(
  values: readonly (number | null)[],
  steps: readonly { readonly coveredMs: number }[],
): (number | null)[] {
  return values.map((value, i) => {
    const coveredMs = steps[i]?.coveredMs ?? 0;
    return value === null || coveredMs === 0 ? null : (value * MINUTE_MS) / coveredMs;
  });
}
