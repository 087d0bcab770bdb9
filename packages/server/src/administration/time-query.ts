/** Parses the requested time: `?window=hour`, or `?from=TIME&to=TIME`. Pure except for the clock. */
import { SluiceError } from "sluice";
import type { AskedTime, StatsSpan } from "../monitoring/views/time.js";

export interface TimeQuery {
  readonly window?: Exclude<StatsSpan, "range">;
  readonly from?: string;
  readonly to?: string;
}

/** Milliseconds, or an RFC 3339 time; a plain number is never read as a year. */
function instantOf(name: string, text: string): number {
  const ms = /^\d{1,15}$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isSafeInteger(ms) && ms >= 0) return ms;
  throw new SluiceError(
    "invalid-request",
    `${name}: expected milliseconds since the epoch or a time such as "2026-06-01T12:00:00Z", got ${JSON.stringify(text)}`,
  );
}

export function askedTime({ window, from, to }: TimeQuery): AskedTime {
  if (from === undefined && to === undefined) return { window: window ?? "hour" };
  if (window !== undefined) {
    throw new SluiceError("invalid-request", `window: expected none beside from and to, got ${JSON.stringify(window)}`);
  }
  if (from === undefined) throw new SluiceError("invalid-request", "from: expected a time beside to, got nothing");
  const fromMs = instantOf("from", from);
  const toMs = to === undefined ? Date.now() : instantOf("to", to);
  if (fromMs < toMs) return { window: "range", fromMs, toMs };
  throw new SluiceError("invalid-request", `to: expected a time after from (${fromMs}), got ${toMs}`);
}
