/**
 * The key summary of a quarter hour or an hour, and merging several (of other instances, of other hours). Pure.
 * The true count is between `count` and `count + error`; a key that is not listed was seen at most `absent` times. Merging adds up all
 * three, so the bounds hold for the merged summary too.
 */
export interface SummaryItem {
  /** The counter's key without its last letter. */
  readonly key: string;
  readonly count: number;
  readonly error: number;
  /** Refusals since the key was listed. */
  readonly refused: number;
  readonly peak: number;
  /** Truncated (`cut-values.ts`); only if the key contains just their digest. */
  readonly attributes?: Readonly<Record<string, string>>;
}

export interface KeyList {
  readonly absent: number;
  readonly items: readonly SummaryItem[];
}

export interface KeySummary {
  /** All checks and refusals, of keys listed or not. */
  readonly checks: number;
  readonly refused: number;
  readonly traffic: KeyList;
  readonly refusals: KeyList;
  /** Units spent, by unit. */
  readonly spend: Readonly<Record<string, KeyList>>;
}

/** Over all instances. */
const MOST_UNITS = 16;

export function mergeSummaries(summaries: readonly KeySummary[], most: number): KeySummary {
  return {
    checks: summaries.reduce((sum, { checks }) => sum + checks, 0),
    refused: summaries.reduce((sum, { refused }) => sum + refused, 0),
    traffic: mergeLists(
      summaries.map(({ traffic }) => traffic),
      most,
    ),
    refusals: mergeLists(
      summaries.map(({ refusals }) => refusals),
      most,
    ),
    spend: mergeSpend(summaries, most),
  };
}

function mergeSpend(summaries: readonly KeySummary[], most: number): KeySummary["spend"] {
  const units = [...new Set(summaries.flatMap(({ spend }) => Object.keys(spend)))].slice(0, MOST_UNITS);
  return Object.fromEntries(
    units.map((unit) => [
      unit,
      mergeLists(
        summaries.flatMap(({ spend }) => (Object.hasOwn(spend, unit) ? [spend[unit]!] : [])),
        most,
      ),
    ]),
  );
}

function mergeLists(lists: readonly KeyList[], most: number): KeyList {
  const absent = lists.reduce((sum, list) => sum + list.absent, 0);
  const merged = new Map<string, SummaryItem>();
  for (const list of lists) {
    for (const item of list.items) {
      // In each list without the key, it may have been seen up to `absent` times; in this list its count is known better.
      const before = merged.get(item.key) ?? { ...item, count: 0, error: absent, refused: 0, peak: 0 };
      merged.set(item.key, {
        ...before,
        count: before.count + item.count,
        error: before.error + item.error - list.absent,
        refused: before.refused + item.refused,
        peak: Math.max(before.peak, item.peak),
      });
    }
  }
  const sorted = [...merged.values()].sort((a, b) => mostOf(b) - mostOf(a));
  const next = sorted[most];
  return { items: sorted.slice(0, most), absent: Math.max(absent, next === undefined ? 0 : mostOf(next)) };
}

/** Upper bound on how often the key was seen. */
export function mostOf({ count, error }: SummaryItem): number {
  return count + error;
}

/** A compact format, as a text has hundreds of keys; see `parseSummary`. */
export function spellSummary({ checks, refused, traffic, refusals, spend }: KeySummary): string {
  const spent = Object.entries(spend).map(([unit, list]) => [unit, spellList(list)]);
  return JSON.stringify([
    checks,
    refused,
    spellList(traffic),
    spellList(refusals),
    ...(spent.length > 0 ? [spent] : []),
  ]);
}

function spellList({ absent, items }: KeyList): unknown[] {
  return [
    absent,
    ...items.map(({ key, count, error, refused, peak, attributes }) => {
      const item: unknown[] = [key, count, error, refused, Math.round(peak * 1_000) / 1_000];
      return attributes === undefined ? item : [...item, attributes];
    }),
  ];
}

/** Throws if the text was not written by `spellSummary`. */
export function parseSummary(text: string): KeySummary {
  // The fifth part is absent without spending, and in texts of older versions.
  const [checks, refused, traffic, refusals, spent = []] = JSON.parse(text);
  const spend = (spent as [string, [number, ...SpelledItem[]]][]).map(
    ([unit, list]) => [unit, parseList(list)] as const,
  );
  return {
    checks,
    refused,
    traffic: parseList(traffic),
    refusals: parseList(refusals),
    spend: Object.fromEntries(spend),
  };
}

type SpelledItem = [string, number, number, number, number, Record<string, string>?];

function parseList([absent, ...items]: [number, ...SpelledItem[]]): KeyList {
  return {
    absent,
    items: items.map(([key, count, error, refused, peak, attributes]) => ({
      key,
      count,
      error,
      refused,
      peak,
      ...(attributes && { attributes }),
    })),
  };
}
