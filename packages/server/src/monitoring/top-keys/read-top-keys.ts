/**
 * The top keys of the last hour or day over all instances, merged from their shared texts.
 * Merged results are cached for a few seconds, so that a dashboard on many screens does not merge once per screen.
 * If the shared texts are unreachable, uses this instance's own counts of the current period.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { readCounterKey } from "sluice";
import type { SharedState } from "../../instance/shared-state.js";
import type { TopKey, TopKeysView } from "../views/keys.js";
import type { Scope, StatsWindow } from "../views/time.js";
import { isCut } from "./cut-values.js";
import {
  type KeyList,
  type KeySummary,
  mergeSummaries,
  mostOf,
  parseSummary,
  type SummaryItem,
} from "./key-summary.js";
import type { TopKeys } from "./top-keys.js";

export interface TopKeysQuery {
  readonly window: StatsWindow;
  readonly by: "traffic" | "refusals" | "spend";
  /** Which unit, with `spend`; default: the first with spending. */
  readonly unit?: string | undefined;
  readonly rule?: string | undefined;
  /** Part of a key attribute's value, case-insensitive. */
  readonly search?: string | undefined;
  readonly limit: number;
  /** Number of keys to skip (pagination). */
  readonly offset?: number | undefined;
  /** One entry for all rules that count by the same attributes. */
  readonly group?: "client" | undefined;
  /** Instead of a window: the whole periods of a range. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

/** A window consists of whole periods: the last hour is four ended quarters plus the current one. */
export const periods = {
  hour: { prefix: "top-keys:quarter:", lengthMs: 15 * 60_000, reachMs: 60 * 60_000, keepMs: 2 * 60 * 60_000 },
  // Two days, so that a day can be compared with the one before.
  day: { prefix: "top-keys:hour:", lengthMs: 60 * 60_000, reachMs: 24 * 60 * 60_000, keepMs: 48 * 60 * 60_000 },
} as const satisfies Record<StatsWindow, unknown>;

/** The finest periods still retained for a range that starts at `fromMs`. */
export function periodsOf(fromMs: number, nowMs: number): (typeof periods)[StatsWindow] {
  return fromMs >= nowMs - periods.hour.keepMs ? periods.hour : periods.day;
}

/** In a counter's key "#" occurs only before a digest. */
const DIGEST = /#[\w-]+/;
const KEPT_FOR_MS = 3_000;
const MERGED = 2_000;
/** Merged ranges cached at once. */
const MOST_SPANS = 8;
const PARTS_AT_ONCE = 16;

export class TopKeysReader {
  readonly #shared: SharedState;
  readonly #own: TopKeys;
  readonly #merged = new Map<string, { atMs: number; summary: Promise<KeySummary> }>();

  constructor(shared: SharedState, own: TopKeys) {
    this.#shared = shared;
    this.#own = own;
  }

  async read(query: TopKeysQuery): Promise<TopKeysView> {
    const { window, by, unit, rule, search, limit, offset = 0 } = query;
    let scope: Scope = "fleet";
    const summary = await this.#summaryOf(spanOf(query)).catch(() => {
      scope = "instance";
      return window === "hour" ? this.#own.quarter() : this.#own.hour();
    });
    const { traffic, refusals } = summary;
    const units = Object.keys(summary.spend).sort();
    const spentUnit = unit ?? units[0];
    const ordered = by === "spend" ? spentOf(summary, spentUnit) : by === "traffic" ? traffic : refusals;
    const other = new Map((by === "traffic" ? refusals : traffic).items.map((item) => [item.key, item]));
    const wanted = search?.toLowerCase();
    const found: FoundKey[] = [];
    for (const item of ordered.items) {
      const { rule: itsRule, attributes = item.attributes ?? {} } = readCounterKey(item.key);
      if (rule !== undefined && itsRule !== rule) continue;
      if (wanted !== undefined && !Object.values(attributes).some((value) => value.toLowerCase().includes(wanted)))
        continue;
      const numbers = numbersOf(item, other.get(item.key), by);
      const digest = isCut(attributes) ? DIGEST.exec(item.key)?.[0] : undefined;
      const key = { rule: itsRule, attributes, ...(digest !== undefined && { digest }), ...numbers };
      found.push({ key, error: item.error });
    }
    const all = query.group === "client" ? byClient(found, by) : found;
    const page = all.slice(offset, offset + limit);
    const maxError = page.reduce((most, { error }) => Math.max(most, error), 0);
    const spent = by === "spend" && { units, ...(spentUnit !== undefined && { unit: spentUnit }) };
    const keys = page.map(({ key }) => key);
    return { atMs: Date.now(), window, by, scope, maxError, ...spent, keys, more: all.length > offset + limit };
  }

  #summaryOf(span: Span): Promise<KeySummary> {
    const name = `${span.prefix}${span.sinceMs ?? ""}-${span.untilMs ?? ""}`;
    const kept = this.#merged.get(name);
    if (kept !== undefined && Date.now() - kept.atMs < KEPT_FOR_MS) return kept.summary;
    const summary = this.#merge(span);
    this.#merged.set(name, { atMs: Date.now(), summary });
    if (this.#merged.size > MOST_SPANS) this.#merged.delete(this.#merged.keys().next().value!);
    // A failure rejects for all waiters, and is not cached.
    summary.catch(() => this.#merged.delete(name));
    return summary;
  }

  async #merge({ prefix, sinceMs, untilMs = Number.POSITIVE_INFINITY }: Span): Promise<KeySummary> {
    const texts = await this.#shared.readAll(prefix);
    let merged = mergeSummaries([], MERGED);
    let parts: KeySummary[] = [];
    for (const [name, text] of texts) {
      // The name continues with the period's start.
      const startMs = Number.parseInt(name.slice(prefix.length), 10);
      if (startMs <= (sinceMs ?? windowStart(prefix)) || startMs >= untilMs) continue;
      parts.push(parseSummary(text));
      if (parts.length === PARTS_AT_ONCE) {
        merged = mergeSummaries([merged, ...parts], MERGED);
        parts = [];
        await nextTurn();
      }
    }
    return mergeSummaries([merged, ...parts], MERGED);
  }
}

interface Span {
  readonly prefix: string;
  /** Texts of periods that start after this; absent: the window that ends now. */
  readonly sinceMs?: number;
  readonly untilMs?: number;
}

function spanOf({ window, fromMs, toMs }: TopKeysQuery): Span {
  if (fromMs === undefined) return { prefix: periods[window].prefix };
  const { prefix, lengthMs } = periodsOf(fromMs, Date.now());
  // Whole periods, including the one that contains `from`.
  return { prefix, sinceMs: fromMs - lengthMs, ...(toMs !== undefined && { untilMs: toMs }) };
}

function windowStart(prefix: string): number {
  const { lengthMs, reachMs } = prefix === periods.hour.prefix ? periods.hour : periods.day;
  return Date.now() - reachMs - lengthMs;
}

interface FoundKey {
  readonly key: TopKey;
  readonly error: number;
}

/** Keys with the same attributes under different rules are one client. Errors add up. */
function byClient(found: readonly FoundKey[], by: TopKeysQuery["by"]): FoundKey[] {
  const clients = new Map<string, FoundKey>();
  for (const { key, error } of found) {
    const name = key.digest ?? JSON.stringify(Object.entries(key.attributes).sort(([a], [b]) => (a < b ? -1 : 1)));
    const before = clients.get(name);
    const part = { rule: key.rule, count: key.count, refused: key.refused };
    if (before === undefined) {
      clients.set(name, { key: { ...key, rules: [part] }, error });
      continue;
    }
    const sum = before.key;
    clients.set(name, {
      error: before.error + error,
      key: {
        ...sum,
        count: sum.count + key.count,
        refused: sum.refused + key.refused,
        peakUtilisation: Math.max(sum.peakUtilisation, key.peakUtilisation),
        rules: [...sum.rules!, part],
        ...(key.spent !== undefined && { spent: (sum.spent ?? 0) + key.spent }),
      },
    });
  }
  const size = ({ key }: FoundKey): number =>
    by === "spend" ? (key.spent ?? 0) : by === "refusals" ? key.refused : key.count;
  return [...clients.values()].sort((a, b) => size(b) - size(a));
}

/** Empty for a unit without spending. */
function spentOf({ spend }: KeySummary, unit: string | undefined): KeyList {
  return unit !== undefined && Object.hasOwn(spend, unit) ? spend[unit]! : { absent: 0, items: [] };
}

/** The count that sorts the list is an upper bound; the other one is the best estimate. */
function numbersOf(item: SummaryItem, other: SummaryItem | undefined, by: TopKeysQuery["by"]) {
  const most = mostOf(item);
  const peakUtilisation = Math.min(1, Math.max(item.peak, other?.peak ?? 0));
  if (by === "spend") {
    // The key's checks, if the traffic table lists it.
    const count = other === undefined ? 0 : mostOf(other);
    return { count, refused: other?.refused ?? 0, peakUtilisation, spent: most };
  }
  if (by === "refusals")
    return { count: Math.max(most, other === undefined ? 0 : mostOf(other)), refused: most, peakUtilisation };
  const refused = Math.min(most, other === undefined ? item.refused : mostOf(other));
  return { count: most, refused, peakUtilisation };
}
