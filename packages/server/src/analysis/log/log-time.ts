/** Times as logs spell them, in ms since the epoch. Undefined for anything else. Pure. */

const months = new Map(
  ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"].map((name, at) => [name, at]),
);

const LOCAL = /^(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})$/;

/** `10/Oct/2026:13:55:36 +0200`, of the common and combined formats. */
export function parseLocalTime(text: string): number | undefined {
  const found = LOCAL.exec(text);
  if (found === null) return undefined;
  const [, day, month, year, hours, minutes, seconds, sign, zoneHours, zoneMinutes] = found;
  const at = months.get(month!);
  if (at === undefined) return undefined;
  const zoneMs = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000;
  const utcMs = Date.UTC(Number(year), at, Number(day), Number(hours), Number(minutes), Number(seconds));
  return inRange(sign === "+" ? utcMs - zoneMs : utcMs + zoneMs);
}

const ISO = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}/;

/** `2026-10-10T13:55:36.123Z`; without a zone it is UTC. */
export function parseIsoTime(text: string): number | undefined {
  if (!ISO.test(text)) return undefined;
  const hasZone = /(?:Z|[+-]\d{2}:?\d{2})$/.test(text);
  return inRange(Date.parse(hasZone ? text : `${text}Z`));
}

/** Seconds since the epoch, such as `1795000000.123`; or ms, us or ns, told by their size. */
export function parseEpoch(value: string | number): number | undefined {
  const number =
    typeof value === "number" ? value : /^\d{9,19}(?:\.\d{1,9})?$/.test(value) ? Number(value) : Number.NaN;
  if (!(number > 0)) return undefined;
  // A hundred billion seconds are the year 5138.
  const scale = number < 1e11 ? 1e3 : number < 1e14 ? 1 : number < 1e17 ? 1e-3 : 1e-6;
  return inRange(number * scale);
}

/** Any of the above. */
export function parseAnyTime(value: unknown): number | undefined {
  if (typeof value === "number") return parseEpoch(value);
  if (typeof value !== "string") return undefined;
  return parseIsoTime(value) ?? parseLocalTime(value) ?? parseEpoch(value);
}

function inRange(ms: number): number | undefined {
  return ms >= 0 && ms < 8.64e15 ? ms : undefined;
}

/** Most lines of a log have the second of the line before: remembers the last text. */
export function rememberLast<T>(parse: (text: string) => T): (text: string) => T {
  let last: { text: string; value: T } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, value: parse(text) };
    return last.value;
  };
}
