/**
 * Durations as rules contain them ("250ms", "1.5s", "30d"), to whole milliseconds and back. Pure. Fractions of a millisecond are refused,
 * never rounded: a window floored to zero would admit everything.
 */

const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Ten years. Longer ones are typos, and the sum of two must stay far below 2^53. */
export const LONGEST_DURATION_MS = 3650 * unitMs.d;

/** Six decimals: the product with the longest unit is still an exact integer. */
const DURATION = /^(\d{1,15})(?:\.(\d{1,6}))?(ms|s|m|h|d)$/;

/** The same grammar, for the JSON Schema. */
export const durationPattern = DURATION.source;

/** Whole milliseconds from 1 to `LONGEST_DURATION_MS`, or undefined. */
export function parseDuration(text: unknown): number | undefined {
  if (typeof text !== "string" || text.length > 24) return undefined;
  const parts = DURATION.exec(text);
  if (parts === null) return undefined;
  const unit = unitMs[parts[3] as keyof typeof unitMs];
  let ms = Number(parts[1]) * unit;
  const decimals = parts[2];
  if (decimals !== undefined) {
    // In integers: in floating point 0.3 * 1000 happens to be whole, and 1.1 * 60000 happens not to be.
    const scale = 10 ** decimals.length;
    const scaledMs = Number(decimals) * unit;
    if (scaledMs % scale !== 0) return undefined;
    ms += scaledMs / scale;
  }
  return ms >= 1 && ms <= LONGEST_DURATION_MS ? ms : undefined;
}

/** In the largest unit that divides it, so that parsing returns the same number. */
export function formatDuration(ms: number): string {
  for (const unit of ["d", "h", "m", "s"] as const) {
    if (ms >= unitMs[unit] && ms % unitMs[unit] === 0) return `${ms / unitMs[unit]}${unit}`;
  }
  return `${ms}ms`;
}
