/**
 * Dates and times in the format of `datetime-local` inputs, `2026-06-01T12:00:00`, in any time zone. Pure.
 * While typing, an input passes on partial years, 0002 and 0020 before 2026: they must not throw.
 */

/** From the epoch to the last four-digit year: nothing can have been counted outside, and URLs cannot express it. */
const FIRST_MS = 0;
const LAST_MS = Date.UTC(9999, 11, 31);
/** No zone's UTC offset exceeds 14 hours. */
const DAY_MS = 86_400_000;

const formats = new Map<string, Intl.DateTimeFormat>();

/** Swedish format matches the input's: 2026-06-01 12:00:00. */
function formatIn(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: zone });
    formats.set(zone, format);
  }
  return format;
}

export function zoned(at: number, zone: string): string {
  return formatIn(zone).format(at).replace(" ", "T");
}

/** Whether the text is a valid time within the supported years. */
export function isTime(text: string): boolean {
  const asUtc = Date.parse(`${text}Z`);
  return asUtc >= FIRST_MS + DAY_MS && asUtc <= LAST_MS;
}

/**
 * The instants that the text denotes, in order: two if clocks went back and the hour occurs twice; none if clocks skipped it, or if the
 * text is invalid or outside the supported years.
 */
export function instantsOf(text: string, zone: string): readonly number[] {
  if (!isTime(text)) return [];
  const asUtc = Date.parse(`${text}Z`);
  const offsetAt = (ms: number): number => Date.parse(`${zoned(ms, zone)}Z`) - ms;
  // Offsets change at most once within a day, so the ones before and after are all candidates.
  const found = [offsetAt(asUtc - DAY_MS), offsetAt(asUtc + DAY_MS)]
    .map((offset) => asUtc - offset)
    .filter((ms) => offsetAt(ms) === asUtc - ms);
  return [...new Set(found)].sort((a, b) => a - b);
}
