/**
 * Stable pagination of a list that changes while it is read. The order is frozen from the moment the first page is left until it is shown
 * again, so that every row is on exactly one page. Rows that have ended are dropped; new rows appear on the first page. Pure.
 */
export interface StillOrder {
  /** All rows that existed when the first page was left. */
  readonly names: readonly string[];
  /** Index of the page's first row. */
  readonly first: number;
}

interface Named {
  readonly name: string;
}

interface StillPage<T> {
  readonly rows: readonly T[];
  readonly first: number;
  /** Index after the page's last row. */
  readonly end: number;
  readonly total: number;
  /** Number of rows added since. */
  readonly fresh: number;
}

/** `order`: undefined on the first page, which follows the list. */
export function stillPage<T extends Named>(
  all: readonly T[],
  order: StillOrder | undefined,
  perPage: number,
): StillPage<T> {
  if (order === undefined) {
    const rows = all.slice(0, perPage);
    return { rows, first: 0, end: rows.length, total: all.length, fresh: 0 };
  }
  const { names, first } = order;
  const now = new Map(all.map((row) => [row.name, row]));
  const onPage = names.slice(first, first + perPage);
  const rows = onPage.flatMap((name) => now.get(name) ?? []);
  const known = new Set(names);
  const fresh = all.filter(({ name }) => !known.has(name)).length;
  return { rows, first, end: first + onPage.length, total: names.length, fresh };
}

/** The order after moving by one page; undefined: the first page, with the list as it is then. */
export function stepTo(all: readonly Named[], order: StillOrder | undefined, first: number): StillOrder | undefined {
  if (first <= 0) return undefined;
  return { names: order?.names ?? all.map(({ name }) => name), first };
}

/** Extends the first page, as it was when it was left, by a ranking read afterwards: all others in their order. */
export function rankingBehind<T>(left: readonly T[], all: readonly T[], nameOf: (row: T) => string): readonly T[] {
  if (left.length === 0) return all;
  const shown = new Set(left.map(nameOf));
  return [...left, ...all.filter((row) => !shown.has(nameOf(row)))];
}
