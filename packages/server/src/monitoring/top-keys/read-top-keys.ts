/**
 * The top keys of the last hour or day, of all instances: their shared texts, merged.
 * A merge is kept for a few seconds: a dashboard on many screens must not have it done again for each.
 * Where those cannot be read, this instance tells its own, of the period that lasts.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { readCounterKey } from "sluice";
import type { SharedState } from "../../instance/shared-state.js";
import type { Scope, StatsWindow, TopKey, TopKeysView } from "../views.js";
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
  /** With `spend`: which; default the first that anything was spent of. */
  readonly unit?: string | undefined;
  readonly rule?: string | undefined;
  /** A part of a key attribute's value, in any case. */
  readonly search?: string | undefined;
  readonly limit: number;
}

/** A window is made of whole periods: the last hour is four quarters that are over and the one that is not. */
export const periods = {
  hour: { prefix: "top-keys:quarter:", lengthMs: 15 * 60_000, reachMs: 60 * 60_000 },
  day: { prefix: "top-keys:hour:", lengthMs: 60 * 60_000, reachMs: 24 * 60 * 60_000 },
} as const satisfies Record<StatsWindow, unknown>;

const KEPT_FOR_MS = 3_000;
const MERGED = 2_000;
const PARTS_AT_ONCE = 16;

export class TopKeysReader {
  readonly #shared: SharedState;
  readonly #own: TopKeys;
  readonly #merged = new Map<StatsWindow, { atMs: number; summary: Promise<KeySummary> }>();

  constructor(shared: SharedState, own: TopKeys) {
    this.#shared = shared;
    this.#own = own;
  }

  async read({ window, by, unit, rule, search, limit }: TopKeysQuery): Promise<TopKeysView> {
    let scope: Scope = "fleet";
    const summary = await this.#summaryOf(window).catch(() => {
      scope = "instance";
      return window === "hour" ? this.#own.quarter() : this.#own.hour();
    });
    const { traffic, refusals } = summary;
    const units = Object.keys(summary.spend).sort();
    const spentUnit = unit ?? units[0];
    const ordered = by === "spend" ? spentOf(summary, spentUnit) : by === "traffic" ? traffic : refusals;
    const other = new Map((by === "traffic" ? refusals : traffic).items.map((item) => [item.key, item]));
    const wanted = search?.toLowerCase();
    const keys: TopKey[] = [];
    let maxError = 0;
    for (const item of ordered.items) {
      if (keys.length === limit) break;
      const { rule: itsRule, attributes = item.attributes ?? {} } = readCounterKey(item.key);
      if (rule !== undefined && itsRule !== rule) continue;
      if (wanted !== undefined && !Object.values(attributes).some((value) => value.toLowerCase().includes(wanted)))
        continue;
      keys.push({ rule: itsRule, attributes, ...numbersOf(item, other.get(item.key), by) });
      maxError = Math.max(maxError, item.error);
    }
    const spent = by === "spend" && { units, ...(spentUnit !== undefined && { unit: spentUnit }) };
    return { atMs: Date.now(), window, by, scope, maxError, ...spent, keys };
  }

  #summaryOf(window: StatsWindow): Promise<KeySummary> {
    const kept = this.#merged.get(window);
    if (kept !== undefined && Date.now() - kept.atMs < KEPT_FOR_MS) return kept.summary;
    const summary = this.#merge(window);
    this.#merged.set(window, { atMs: Date.now(), summary });
    // A failure rejects for its waiters, and is not cached.
    summary.catch(() => this.#merged.delete(window));
    return summary;
  }

  async #merge(window: StatsWindow): Promise<KeySummary> {
    const { prefix, lengthMs, reachMs } = periods[window];
    const sinceMs = Date.now() - reachMs - lengthMs;
    const texts = await this.#shared.readAll(prefix);
    let merged = mergeSummaries([], MERGED);
    let parts: KeySummary[] = [];
    for (const [name, text] of texts) {
      // The name goes on with the period's start.
      if (Number.parseInt(name.slice(prefix.length), 10) <= sinceMs) continue;
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

/** Of a unit that nothing was spent of: none. */
function spentOf({ spend }: KeySummary, unit: string | undefined): KeyList {
  return unit !== undefined && Object.hasOwn(spend, unit) ? spend[unit]! : { absent: 0, items: [] };
}

/** The count that orders the list is never below the truth; the other one is the best estimate. */
function numbersOf(item: SummaryItem, other: SummaryItem | undefined, by: TopKeysQuery["by"]) {
  const most = mostOf(item);
  const peakUtilisation = Math.min(1, Math.max(item.peak, other?.peak ?? 0));
  if (by === "spend") {
    // Checks of the key as far as the table of traffic has it.
    const count = other === undefined ? 0 : mostOf(other);
    return { count, refused: other?.refused ?? 0, peakUtilisation, spent: most };
  }
  if (by === "refusals")
    return { count: Math.max(most, other === undefined ? 0 : mostOf(other)), refused: most, peakUtilisation };
  const refused = Math.min(most, other === undefined ? item.refused : mostOf(other));
  return { count: most, refused, peakUtilisation };
}
