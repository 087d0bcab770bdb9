/**
 * The most frequent and the most refused keys: a quarter hour at a time, on the path of every check.
 * In: checks with their counters' keys. Out: a summary per quarter hour and hour, published by `key-texts.ts` and merged by
 * `read-top-keys.ts`.
 * A counter's key serves as the item: it exists already, and readers can parse rule and attributes from it.
 */
import type { DecidedRequest, Decision } from "sluice";
import type { KeySpend } from "../spend/key-spend.js";
import { cutKey } from "./cut-values.js";
import { FrequentItems, type Item } from "./frequent-items.js";
import { type KeyList, type KeySummary, mergeSummaries } from "./key-summary.js";

/**
 * Overestimates traffic and refusal counts by at most n / 1001, where n is the instance's number of checks or refusals in that quarter
 * hour.
 */
const TABLE = 1_000;
/** How many of them are published. */
const KEPT_OF_QUARTER = 500;
const KEPT_OF_HOUR = 300;

interface KeyItem extends Item {
  refused: number;
  /** Highest share of the limit in use. */
  peak: number;
  /** Truncated attributes, if the key contains only their digest. */
  attributes: Record<string, string> | undefined;
}

export class TopKeys {
  /** A rule's key attributes. */
  readonly #keyAttributes: (rule: string) => readonly string[];
  #traffic = new FrequentItems<KeyItem>(TABLE);
  #refusals = new FrequentItems<KeyItem>(TABLE);
  readonly #spend: Pick<KeySpend, "quarter" | "endQuarter"> | undefined;
  #checks = 0;
  #refused = 0;
  /** The hour's ended quarters, merged. */
  #hourBefore: KeySummary | undefined;

  constructor(keyAttributes: (rule: string) => readonly string[], spend?: Pick<KeySpend, "quarter" | "endQuarter">) {
    this.#keyAttributes = keyAttributes;
    this.#spend = spend;
  }

  add({ checks }: Decision, request: DecidedRequest): void {
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i]!;
      const key = request.checks[i]?.key;
      if (check.mode === "candidate" || key === undefined) continue;
      this.#checks++;
      const use = check.allowed ? (check.limit - check.remaining) / check.limit : 1;
      const refused = !check.allowed && check.mode === "enforce";
      const item = this.#traffic.find(key);
      if (item === undefined) {
        const attributes = this.#attributesOf(key, check.rule, request);
        this.#traffic.insert(key, { count: 1, refused: refused ? 1 : 0, peak: use, attributes });
      } else {
        item.count++;
        if (refused) item.refused++;
        if (use > item.peak) item.peak = use;
      }
      if (refused) this.#addRefusal(key, check.rule, request);
    }
  }

  #addRefusal(key: string, rule: string, request: DecidedRequest): void {
    this.#refused++;
    const item = this.#refusals.find(key);
    if (item !== undefined) item.count++;
    else {
      const attributes = this.#attributesOf(key, rule, request);
      this.#refusals.insert(key, { count: 1, refused: 1, peak: 1, attributes });
    }
  }

  /** Only if the key does not contain the values: "#" occurs only before a digest. */
  #attributesOf(key: string, rule: string, { attributes }: DecidedRequest): KeyItem["attributes"] {
    if (!key.includes("#")) return undefined;
    return cutKey(this.#keyAttributes(rule), attributes);
  }

  /** The quarter hour so far. */
  quarter(): KeySummary {
    return {
      checks: this.#checks,
      refused: this.#refused,
      traffic: listOf(this.#traffic, KEPT_OF_QUARTER),
      refusals: listOf(this.#refusals, KEPT_OF_QUARTER),
      spend: this.#spend?.quarter() ?? {},
    };
  }

  /** The hour so far. */
  hour(): KeySummary {
    const quarter = this.quarter();
    return mergeSummaries(this.#hourBefore === undefined ? [quarter] : [this.#hourBefore, quarter], KEPT_OF_HOUR);
  }

  endQuarter({ endsHour }: { endsHour: boolean }): void {
    this.#hourBefore = endsHour ? undefined : this.hour();
    this.#traffic = new FrequentItems(TABLE);
    this.#refusals = new FrequentItems(TABLE);
    this.#spend?.endQuarter();
    this.#checks = 0;
    this.#refused = 0;
  }
}

function listOf(items: FrequentItems<KeyItem>, most: number): KeyList {
  const { items: found, offset, absent } = items.top(most);
  return {
    absent,
    // Drop the last letter, which encodes the stored form: the key stays the same if its rule's algorithm changes.
    items: found.map(([key, { count, refused, peak, attributes }]) => ({
      key: key.slice(0, -1),
      count,
      error: offset,
      refused,
      peak,
      ...(attributes && { attributes }),
    })),
  };
}
