/**
 * Calendar windows (days, weeks from Monday, months) in a time zone. Redis has no time zone database, so the boundaries around the present
 * are computed here and travel with the check; the script picks by its own clock. Pure: time is an argument.
 */

export interface Calendar {
  readonly unit: "day" | "week" | "month";
  /** IANA name. */
  readonly timezone: string;
}

const DAY_MS = 86_400_000;

/**
 * The nominal length of each unit, where a single number is needed (`RateLimit-Policy`, charts): a day with a clock change has 23 or 25
 * hours, a month up to 31 days. Decisions follow the calendar itself.
 */
export const calendarMs = { day: DAY_MS, week: 7 * DAY_MS, month: 31 * DAY_MS } as const;

/**
 * Five consecutive window starts; the given instant is in the second or third of the four windows between them, so that a store whose clock
 * differs by up to a window still finds its own.
 */
export type Boundaries = readonly [number, number, number, number, number];

export function boundariesAround(calendar: Calendar, nowMs: number): Boundaries {
  const [year, month, day] = localDate(nowMs, calendar.timezone);
  const weekday = (new Date(Date.UTC(year, month, day)).getUTCDay() + 6) % 7;
  const start = (offset: number): number => {
    switch (calendar.unit) {
      case "day":
        return startOfDay(year, month, day + offset, calendar.timezone);
      case "week":
        return startOfDay(year, month, day - weekday + 7 * offset, calendar.timezone);
      case "month":
        return startOfDay(year, month + offset, 1, calendar.timezone);
    }
  };
  return [start(-1), start(0), start(1), start(2), start(3)];
}

/** The instant at which a local calendar day begins. Out-of-range days and months carry over, as in Date.UTC. */
function startOfDay(year: number, month: number, day: number, timezone: string): number {
  const wallMs = Date.UTC(year, month, day);
  // The offset at the wall time read as UTC is at most a day off; a second lookup settles it unless a clock change lies in between.
  const first = wallMs - offsetMs(wallMs, timezone);
  const second = wallMs - offsetMs(first, timezone);
  if (offsetMs(second, timezone) === offsetMs(first, timezone)) return second;
  // Midnight falls in a gap (clocks go forward at 00:00, as in parts of America): the day begins when the gap ends.
  return Math.max(first, second);
}

/** Bounds the caches by name: "uTC" and "UtC" are also time zones, and a client may send both. */
const MOST_NAMES = 1_000;
const knownTimezones = new Set<string>();

/** Cached, because the lookup costs 50 us. */
export function isTimezone(name: string): boolean {
  if (knownTimezones.has(name)) return true;
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
  } catch {
    return false;
  }
  if (knownTimezones.size >= MOST_NAMES) knownTimezones.clear();
  knownTimezones.add(name);
  return true;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatFor(timezone: string): Intl.DateTimeFormat {
  let format = formats.get(timezone);
  if (format === undefined) {
    if (formats.size >= MOST_NAMES) formats.clear();
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: timezone,
      calendar: "gregory",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(timezone, format);
  }
  return format;
}

function wallFields(atMs: number, timezone: string): Record<string, number> {
  const fields: Record<string, number> = {};
  for (const { type, value } of formatFor(timezone).formatToParts(atMs)) {
    if (type !== "literal") fields[type] = Number(value);
  }
  return fields;
}

function localDate(atMs: number, timezone: string): [number, number, number] {
  const wall = wallFields(atMs, timezone);
  return [wall.year!, wall.month! - 1, wall.day!];
}

/** Local time minus UTC at an instant. */
function offsetMs(atMs: number, timezone: string): number {
  const wall = wallFields(atMs, timezone);
  const wallMs = Date.UTC(wall.year!, wall.month! - 1, wall.day!, wall.hour!, wall.minute!, wall.second!);
  return wallMs - Math.floor(atMs / 1000) * 1000;
}
