/**
 * Dates and times as a box of type `datetime-local` holds them, `2026-06-01T12:00:00`, in any time zone. Pure.
 * A box hands over every year that is typed on the way, 0002 and 0020 before 2026: none of them may throw.
 */

/** The epoch, and before a year has five digits: outside nothing can have been counted, and addresses cannot spell it. */
const FIRST_MS = 0;
const LAST_MS = Date.UTC(9999, 11, 31);
/** No zone is further from UTC than 14 hours. */
const DAY_MS = 86_400_000;

const formats = new Map<string, Intl.DateTimeFormat>();

/** Swedish is written as the box wants it: 2026-06-01 12:00:00. */
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

/** Whether a text is a time at all, of a year in which something can have been counted. */
export function isTime(text: string): boolean {
  const asUtc = Date.parse(`${text}Z`);
  return asUtc >= FIRST_MS + DAY_MS && asUtc <= LAST_MS;
}

/**
 * The instants that such a text means, in order: two for an hour that comes twice when clocks go back, none for one that clocks skip, for
 * a text that is no time, and for years in which nothing was counted.
 */
export function instantsOf(text: string, zone: string): readonly number[] {
  if (!isTime(text)) return [];
  const asUtc = Date.parse(`${text}Z`);
  const offsetAt = (ms: number): number => Date.parse(`${zoned(ms, zone)}Z`) - ms;
  // Offsets change at most once within a day: the ones before and after are all there can be.
  const found = [offsetAt(asUtc - DAY_MS), offsetAt(asUtc + DAY_MS)]
    .map((offset) => asUtc - offset)
    .filter((ms) => offsetAt(ms) === asUtc - ms);
  return [...new Set(found)].sort((a, b) => a - b);
}
