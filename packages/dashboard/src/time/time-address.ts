/**
 * The selected time in the URL: `?range=6h`, or `?from=…&to=…`; with `compare` and `zone`. Shared by all pages: links carry these
 * parameters. Pure.
 */

/** Frame parameters. Attributes with these names get a prefix in URLs (`keys/key-address.ts`). */
export const frameNames = ["range", "from", "to", "compare", "zone"] as const;

export const presets = [
  { value: "live", label: "Live", lengthMs: 2 * 60_000 },
  { value: "5m", label: "Last 5 minutes", lengthMs: 5 * 60_000 },
  { value: "15m", label: "Last 15 minutes", lengthMs: 15 * 60_000 },
  { value: "1h", label: "Last hour", lengthMs: 3_600_000 },
  { value: "6h", label: "Last 6 hours", lengthMs: 6 * 3_600_000 },
  { value: "1d", label: "Last day", lengthMs: 24 * 3_600_000 },
  { value: "2d", label: "Last 2 days", lengthMs: 48 * 3_600_000 },
  { value: "8d", label: "All that is kept: 8 days", lengthMs: 8 * 24 * 3_600_000 },
] as const;

export type Preset = (typeof presets)[number]["value"];
/** The same period a day or a week earlier, or the one that ends where this one starts. */
export type Compare = "day" | "week" | "span";

/** A range that ends now, or an absolute one. */
export type ShownTime =
  | { readonly range: Preset }
  | { readonly range: "custom"; readonly fromMs: number; readonly toMs: number };

/** The offset of the compared period. */
export function compareOffsetMs(compare: Compare, time: ShownTime): number {
  if (compare === "day") return 86_400_000;
  if (compare === "week") return 7 * 86_400_000;
  const { fromMs, toMs } = boundsOf(time);
  return Math.round(toMs - fromMs);
}

export function timeIn(search: string, fallback: Preset): ShownTime {
  const params = new URLSearchParams(search);
  // The service rejects times before the epoch.
  const fromMs = Math.max(0, Date.parse(params.get("from") ?? ""));
  const toMs = Date.parse(params.get("to") ?? "");
  if (fromMs < toMs) return { range: "custom", fromMs, toMs };
  const range = params.get("range");
  return { range: presets.find(({ value }) => value === range)?.value ?? fallback };
}

export function compareIn(search: string): Compare | undefined {
  const given = new URLSearchParams(search).get("compare");
  return given === "day" || given === "week" || given === "span" ? given : undefined;
}

/** The URL's query with another time; everything else stays. */
export function withTime(search: string, time: ShownTime): string {
  const params = new URLSearchParams(search);
  for (const name of ["range", "from", "to"]) params.delete(name);
  if (time.range === "custom") {
    params.set("from", instantText(time.fromMs));
    params.set("to", instantText(time.toMs));
  } else params.set("range", time.range);
  return params.toString();
}

/** Rounded to the second: a drag is no more precise than that. */
function instantText(ms: number): string {
  return `${new Date(Math.round(ms / 1_000) * 1_000).toISOString().slice(0, 19)}Z`;
}

/** The URL of another page, with this page's frame parameters; its own take precedence. */
export function carried(to: string, search: string): string {
  const [, path = "", own = "", hash = ""] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/.exec(to) ?? [];
  const params = new URLSearchParams(own);
  const here = new URLSearchParams(search);
  const setsTime = ["range", "from", "to"].some((name) => params.has(name));
  for (const name of frameNames) {
    const value = here.get(name);
    const isTime = name !== "compare" && name !== "zone";
    if (value !== null && !params.has(name) && !(isTime && setsTime)) params.set(name, value);
  }
  const text = params.toString();
  return `${path}${text === "" ? "" : `?${text}`}${hash}`;
}

/** As an admin API query. Presets are cached by name for all screens. */
export function timeQuery(time: ShownTime, offsetMs = 0): Record<string, string | number> {
  if (time.range === "custom") return { from: time.fromMs - offsetMs, to: time.toMs - offsetMs };
  if (offsetMs === 0) {
    if (time.range === "live") return { window: "live" };
    if (time.range === "1h") return { window: "hour" };
    if (time.range === "1d") return { window: "day" };
  }
  const { fromMs, toMs } = boundsOf(time);
  return { from: fromMs - offsetMs, to: toMs - offsetMs };
}

export function boundsOf(time: ShownTime): { fromMs: number; toMs: number } {
  if (time.range === "custom") return time;
  const nowMs = Date.now();
  return { fromMs: nowMs - presets.find(({ value }) => value === time.range)!.lengthMs, toMs: nowMs };
}

/** Identifies a time in query keys. */
export function timeName(time: ShownTime): string {
  return time.range === "custom" ? `${time.fromMs}-${time.toMs}` : time.range;
}

/** A range in the past no longer changes. */
export function isOver(time: ShownTime): boolean {
  return time.range === "custom" && time.toMs < Date.now() - 15 * 60_000;
}

/** A short description without clock times. */
export function timeWords(time: ShownTime): string {
  if (time.range === "custom") return "the chosen time";
  if (time.range === "live") return "the last 2 minutes";
  return time.range === "8d"
    ? "the last 8 days"
    : `the ${presets.find(({ value }) => value === time.range)!.label.toLowerCase()}`;
}
