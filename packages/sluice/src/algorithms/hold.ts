/**
 * A hold: the units that one reservation has charged ahead of its real cost, until it is settled. Twin: hold.lua. In: what was held, and
 * what the work really cost. Out: what to give back to each counter. Pure: time is an argument.
 */
import { mostToCharge, type Policy } from "./policy.js";
import { MOST_ENTRIES } from "./rolling-window.js";

/** Units that were charged together: by the check, or by one extension. */
export interface HoldRow {
  readonly entryId: string;
  readonly atMs: number;
  /** One number per counter. */
  readonly units: readonly number[];
  /** For a bucket: what it lacked after this charge, plus what had been given back by then (token-bucket.ts); 0 for others. */
  readonly owed: readonly number[];
}

export interface Hold {
  /** Covers everything in the reservation's id. */
  readonly digest: string;
  readonly endsAtMs: number;
  readonly rows: readonly HoldRow[];
  /** The real costs, one per counter; undefined while it is open. */
  readonly charged: readonly number[] | undefined;
  /** The name of the settlement that counted. */
  readonly by?: string;
}

/** Extensions beyond this share the last row, and count as if they were as old as it: their units can then be given back only in part. */
const MOST_HOLD_ROWS = 64;

/**
 * The most that an extension may hold in total, given a wanted amount. A sorted set has an entry per unit, which a settlement removes one
 * by one while all other Redis clients wait. Work that may finish is charged for the rest when it is settled; work that must stop is
 * refused.
 */
export function mostToHold(
  amount: number,
  { policy: before, policyNow, finishes }: { policy: Policy; policyNow?: Policy | undefined; finishes: boolean },
): number {
  const policy = policyNow ?? before;
  if (policy.stored === "rolling-window") {
    if (amount <= MOST_ENTRIES) return amount;
    return finishes ? MOST_ENTRIES : Number.MAX_SAFE_INTEGER;
  }
  return finishes ? mostToCharge(amount, policy) : amount;
}

/** The units held in one counter. */
export function heldOf({ rows }: Pick<Hold, "rows">, counter: number): number {
  return rows.reduce((sum, { units }) => sum + units[counter]!, 0);
}

/** The rows that give units back, newest first. */
export function rowsToRepay(
  { rows }: Pick<Hold, "rows">,
  counter: number,
  units: number,
): { row: HoldRow; units: number }[] {
  const repaid: { row: HoldRow; units: number }[] = [];
  let left = units;
  for (let r = rows.length - 1; r >= 0 && left > 0; r--) {
    const row = rows[r]!;
    const taken = Math.min(left, row.units[counter]!);
    if (taken > 0) repaid.push({ row, units: taken });
    left -= taken;
  }
  return repaid;
}

/** Adds the units of one more extension to the rows. */
export function withRow(rows: readonly HoldRow[], added: Omit<HoldRow, "entryId">): HoldRow[] {
  if (rows.length < MOST_HOLD_ROWS) return [...rows, { ...added, entryId: extensionName(rows) }];
  const last = rows.at(-1)!;
  const units = last.units.map((n, i) => n + added.units[i]!);
  return [...rows.slice(0, -1), { ...last, units }];
}

/** The name of the next extension's entries. */
export function extensionName(rows: readonly HoldRow[]): string {
  return `${rows[0]!.entryId}:x${Math.min(rows.length, MOST_HOLD_ROWS - 1)}`;
}

/** The name of the entries that exceed what was held. */
export function overrunName(rows: readonly HoldRow[]): string {
  return `${rows[0]!.entryId}:o`;
}
