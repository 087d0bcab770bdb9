/**
 * Time and scope of figures: parts of the other views.
 * The views are the response types of the admin API, shown by the dashboard and `sluice top`. Counts are over all instances that share the
 * history; times are the service's, in milliseconds since the epoch.
 */

export type StatsWindow = "hour" | "day";

/** `live`: the last two minutes, per second. `range`: from one instant to another. */
export type StatsSpan = StatsWindow | "live" | "range";

/** A window that ends now, or a range within the eight days retained. */
export type AskedTime =
  | { readonly window: Exclude<StatsSpan, "range"> }
  | { readonly window: "range"; readonly fromMs: number; readonly toMs: number };

/** `fleet`: all instances that share the history. `instance`: the history is unreachable, so only the responding instance's own counts. */
export type Scope = "fleet" | "instance";

/** One value per step of a window; null if unknown. */
export type Series = readonly (number | null)[];
