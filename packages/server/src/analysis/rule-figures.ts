/** The figures of a rule in a replay: how often it was checked, which keys it refused, and the most that it admitted in one window. */
import { type Decision, type Rule, readCounterKey } from "sluice";
import { parseDuration } from "sluice/internal";
import { countOne, FrequentItems, type Item } from "../monitoring/top-keys/frequent-items.js";
import { DistinctKeys } from "./distinct-keys.js";
import { type KeyWindow, WorstWindow } from "./worst-window.js";

export interface KeyFigures {
  readonly key: string;
  readonly refused: number;
}

export interface RuleFigures {
  readonly rule: string;
  /** `shadow` and `candidate` are reported, never enforced. */
  readonly mode: string;
  readonly total: number;
  readonly refused: number;
  /** Of the total. */
  readonly share: number;
  /** Keys that the rule checked, and how many of them had at least one refusal. */
  readonly keys: number;
  readonly keysRefused: number;
  /** Whether `keys`, `keysRefused` and the top keys are exact; beyond a hundred thousand keys they are lower bounds. */
  readonly exact: boolean;
  readonly topKeys: readonly KeyFigures[];
  /** The most units that one key was admitted in any rolling window of the rule's length; absent for rules without a window. */
  readonly worstWindow?: {
    readonly key: string;
    readonly admitted: number;
    readonly limit: number;
    readonly at: string;
  };
}

/** Exact up to twice this number. */
const KEEP_KEYS = 50_000;
const TOP_KEYS = 10;

export class RuleCount {
  readonly #rule: string;
  readonly #mode: string;
  readonly #limit: number;
  readonly #keys = new DistinctKeys(2 * KEEP_KEYS);
  readonly #refusedKeys = new FrequentItems<Item>(KEEP_KEYS);
  readonly #admitted: WorstWindow | undefined;
  total = 0;
  refused = 0;

  constructor({
    rule,
    mode,
    limit,
    windowMs,
  }: { rule: string; mode: string; limit: number; windowMs: number | undefined }) {
    this.#rule = rule;
    this.#mode = mode;
    this.#limit = limit;
    this.#admitted = windowMs === undefined ? undefined : new WorstWindow(windowMs);
  }

  add(
    key: string,
    { allowed, isCharged, cost, atMs }: { allowed: boolean; isCharged: boolean; cost: number; atMs: number },
  ): void {
    this.total++;
    this.#keys.add(key);
    if (isCharged) this.#admitted?.add(key, cost, atMs);
    if (allowed) return;
    this.refused++;
    countOne(this.#refusedKeys, key);
  }

  /** Starts a key whose state the caller holds, so that no look-up is needed per request. The same key may come again, as a new one. */
  begin(key: string): KeyCount {
    this.#keys.add(key);
    return new KeyCount(this, key);
  }

  addTo(
    known: KeyCount,
    { allowed, isCharged, cost, atMs }: { allowed: boolean; isCharged: boolean; cost: number; atMs: number },
  ): void {
    this.total++;
    if (isCharged) this.#admitted?.addTo(known, known.key, cost, atMs);
    if (allowed) return;
    this.refused++;
    countOne(this.#refusedKeys, known.key);
  }

  isOver(known: KeyCount, nowMs: number): boolean {
    return this.#admitted === undefined || this.#admitted.isOver(known, nowMs);
  }

  read(): RuleFigures {
    const worst = this.#admitted?.worst();
    return {
      rule: this.#rule,
      mode: this.#mode,
      total: this.total,
      refused: this.refused,
      share: this.total === 0 ? 0 : this.refused / this.total,
      keys: this.#keys.size,
      keysRefused: this.#refusedKeys.size,
      exact: this.#keys.isExact && this.#refusedKeys.offset === 0,
      topKeys: this.#refusedKeys
        .top(TOP_KEYS)
        .items.map(([key, { count }]) => ({ key: spellKey(key), refused: count })),
      ...(worst !== undefined && {
        worstWindow: {
          key: spellKey(worst.key),
          admitted: worst.max,
          limit: this.#limit,
          at: new Date(worst.atMs).toISOString(),
        },
      }),
    };
  }
}

/** One key of one rule, held by its caller. It is its own window: every additional object that a request must reach takes time. */
export class KeyCount implements KeyWindow {
  readonly count: RuleCount;
  readonly key: string;
  entries: number[] = [];
  head = 0;
  end = 0;
  sum = 0;

  constructor(count: RuleCount, key: string) {
    this.count = count;
    this.key = key;
  }
}

/** `user=42, path=/v1/x`: a counter's key attributes. */
export function spellKey(counterKey: string): string {
  const { attributes } = readCounterKey(counterKey);
  if (attributes === undefined) return "(a long key)";
  const pairs = Object.entries(attributes).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? "(all requests)" : pairs.join(", ");
}

/** Undefined if the rule has no window of fixed length. */
export function windowOf(rule: Rule): number | undefined {
  return "window" in rule && rule.window !== undefined ? parseDuration(rule.window) : undefined;
}

/** Whether a check of a decision was charged: all checks of a request are, or none. */
export function isCharged(decision: Pick<Decision, "allowed">, mode: string, allowed: boolean): boolean {
  return allowed && (decision.allowed || mode === "candidate");
}
