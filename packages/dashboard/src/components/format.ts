/** Formats numbers, times and sizes for people. Pure except for the user's time zone. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** "1,234,567": in full, as in the command line's output (`packages/server/src/cli/print.ts`). */
export function count(value: number): string {
  return whole.format(value);
}

/** For axes, which have little room: "123.5K" from a hundred thousand on. */
export function shortCount(value: number): string {
  return Math.abs(value) < 100_000 ? whole.format(value) : compact.format(value);
}

/** A rate, with a decimal for small values: 0.4, 12, 1,234. */
export function rate(value: number): string {
  return value > 0 && value < 10 ? String(Number(value.toFixed(1))) : count(value);
}

/** A rate on an axis. */
export function axisRate(value: number): string {
  return `${Math.abs(value) < 100_000 ? rate(value) : shortCount(value)}/s`;
}

/** A share in per cent; never "0 %" for a positive one, nor "100 %" for less than all. */
export function share(value: number): string {
  const percent = value * 100;
  if (percent > 0 && percent < 0.1) return "<0.1 %";
  if (percent < 100 && percent > 99.9) return ">99.9 %";
  return `${Number(percent.toFixed(percent < 10 ? 1 : 0))} %`;
}

export function milliseconds(value: number): string {
  if (value >= 1_000) return `${Number((value / 1_000).toFixed(1))} s`;
  return value >= 10 ? `${Math.round(value)} ms` : `${Number(value.toFixed(2))} ms`;
}

const spans = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** "3 min", "2 h": rounded down, the largest unit that fits; at least "0 s". */
export function span(ms: number): string {
  const [unit, length] = spans.find(([, unitMs]) => ms >= unitMs) ?? ["s", 1_000];
  return `${Math.floor(Math.max(0, ms) / length)} ${unit}`;
}

/** `NEVER_MS` of the decision: no wait helps. A longer one is a real wait, such as a month's. */
const NEVER_MS = 2_147_483_647;

export function isEndless(ms: number): boolean {
  return ms === NEVER_MS;
}

/** A wait, rounded up, so that a client that waits this long is not early. */
export function wait(ms: number): string {
  if (isEndless(ms)) return "never";
  if (ms < 1_000) return `${Math.ceil(ms)} ms`;
  if (ms < 10_000) return `${Math.ceil(ms / 100) / 10} s`;
  if (ms < 120_000) return `${Math.ceil(ms / 1_000)} s`;
  return ms < 7_200_000 ? `${Math.ceil(ms / 60_000)} min` : `${Math.ceil(ms / 3_600_000)} h`;
}

function formatsIn(timeZone: string | undefined) {
  const of = (parts: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat("en-GB", { ...parts, ...(timeZone !== undefined && { timeZone }) });
  return {
    clock: of({ hour: "2-digit", minute: "2-digit", second: "2-digit" }),
    day: of({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }),
    full: of({ day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" }),
    date: of({ day: "numeric", month: "short" }),
    minute: of({ hour: "2-digit", minute: "2-digit" }),
  };
}

let zone: string | undefined;
let formats = formatsIn(undefined);

/** The zone of all times on the page; undefined: the browser's. */
export function setZone(name: string | undefined): void {
  if (name === zone) return;
  zone = name;
  formats = formatsIn(name);
}

export function currentZone(): string | undefined {
  return zone;
}

export function dateOf(at: number): string {
  return formats.date.format(at);
}

export function minuteTime(at: number): string {
  return formats.minute.format(new Date(at));
}

export function clockTime(at: number | string): string {
  return formats.clock.format(new Date(at));
}

export function dayTime(at: number | string): string {
  return formats.day.format(new Date(at));
}

/** With its year, for times that may be far away. */
export function fullTime(at: number | string): string {
  return formats.full.format(new Date(at));
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** power;
  return `${Number(scaled.toFixed(scaled < 10 && power > 0 ? 1 : 0))} ${units[power]}`;
}

/** A count with its rule's unit: "1,234 tokens"; requests, the default, have no suffix. */
export function withUnit(value: number, unit: string | undefined): string {
  if (unit === undefined) return count(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "microdollars") return dollars(value / 1_000_000);
  return `${count(value)} ${visible(unit)}`;
}

/** The same for axes: without the suffix. */
export function axisUnit(value: number, unit: string | undefined): string {
  return unit === "bytes" || unit === "microdollars" ? withUnit(value, unit) : shortCount(value);
}

/** "12 of 50,000 tokens". */
export function partOf(part: number, whole: number, unit: string | undefined): string {
  const isPlain = unit !== "bytes" && unit !== "microdollars";
  return `${isPlain ? count(part) : withUnit(part, unit)} of ${withUnit(whole, unit)}`;
}

/** Four decimals for small amounts, as single calls cost fractions of a cent. */
function dollars(value: number): string {
  const places = value !== 0 && Math.abs(value) < 1 ? 4 : 2;
  return `$${new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: places }).format(value)}`;
}

// Control and format characters: invisible, or they reorder text. Clients may choose keys that look like others (spoofing).
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Untrusted text with invisible characters escaped. */
export function visible(text: string): string {
  return text.replace(unseen, (character) => {
    const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
  });
}

/** A figure that may be unknown. */
export function known<T>(value: T | undefined, format: (value: T) => string): string {
  return value === undefined ? "–" : format(value);
}

/** A rule field's value, on one line. */
export function fieldValue(value: unknown): string {
  return visible(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}
