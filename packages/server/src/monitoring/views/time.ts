/**
 * The time that figures are of, and of whom they tell: parts of the other views.
 * Shapes of the admin API's figures, which the dashboard and `sluice top` show. Counts are of all instances that share the history; times are
 * the service's, in milliseconds since the epoch.
 */

export type StatsWindow = "hour" | "day";

/** `live`: the last two minutes, by the second. `range`: from one instant to another. */
export type StatsSpan = StatsWindow | "live" | "range";

/** A window that ends now, or a range of the eight days that are kept. */
export type AskedTime =
  | { readonly window: Exclude<StatsSpan, "range"> }
  | { readonly window: "range"; readonly fromMs: number; readonly toMs: number };

/** `fleet`: of all instances that share the history. `instance`: the history cannot be read; what the instance that answers has counted itself. */
export type Scope = "fleet" | "instance";

/** One value for each step of a window; null where nothing is known. */
export type Series = readonly (number | null)[];
