/** The filters of the audit as they stand in its address: `?author=…&rule=…&since=2026-11-01&until=2026-11-30`. Pure. */
import type { AuditFilter } from "../api/shapes.js";

/** "" where nothing is asked. `from` and `to` are the frame's: other pages show them. */
export interface AuditQuery {
  readonly author: string;
  readonly rule: string;
  /** Days of UTC; both are among those shown. */
  readonly since: string;
  readonly until: string;
}

/** What an address may hold is anything: a day that is none is not asked for. */
export function auditQueryIn(search: string): AuditQuery {
  const params = new URLSearchParams(search);
  const text = (name: string): string => params.get(name) ?? "";
  const day = (name: string): string => (isDay(text(name)) ? text(name) : "");
  return { author: text("author"), rule: text("rule"), since: day("since"), until: day("until") };
}

/** The 30th of February is none, though a date can be made of it. */
function isDay(text: string): boolean {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/** As the service takes it: only what is asked. */
export function auditFilter({ author, rule, since, until }: AuditQuery): AuditFilter {
  return {
    ...(author !== "" && { actor: author }),
    ...(rule !== "" && { rule }),
    ...(since !== "" && { from: `${since}T00:00:00Z` }),
    ...(until !== "" && { to: `${until}T23:59:59.999Z` }),
  };
}
