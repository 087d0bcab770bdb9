/** The audit log's filters in the URL: `?author=…&rule=…&since=2026-11-01&until=2026-11-30`. Pure. */
import type { AuditFilter } from "../api/shapes.js";

/** "" if not set. `from` and `to` are frame parameters, used by other pages. */
export interface AuditQuery {
  readonly author: string;
  readonly rule: string;
  /** Days in UTC, both inclusive. */
  readonly since: string;
  readonly until: string;
}

/** The URL is untrusted: ignores an invalid day. */
export function auditQueryIn(search: string): AuditQuery {
  const params = new URLSearchParams(search);
  const text = (name: string): string => params.get(name) ?? "";
  const day = (name: string): string => (isDay(text(name)) ? text(name) : "");
  return { author: text("author"), rule: text("rule"), since: day("since"), until: day("until") };
}

/** Rejects the 30th of February, from which a Date could be made. */
function isDay(text: string): boolean {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/** In the service's format; only filters that are set. */
export function auditFilter({ author, rule, since, until }: AuditQuery): AuditFilter {
  return {
    ...(author !== "" && { actor: author }),
    ...(rule !== "" && { rule }),
    ...(since !== "" && { from: `${since}T00:00:00Z` }),
    ...(until !== "" && { to: `${until}T23:59:59.999Z` }),
  };
}
