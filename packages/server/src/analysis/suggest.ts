/**
 * Suggests limits from real traffic: the exact maxima of every key over rolling windows, and for each limit how many keys it would affect.
 * In: requests. Out: suggestions, and rules in shadow mode to try them.
 */
import type { Attributes, Rule } from "sluice";
import { RollingMaxima } from "./rolling-maxima.js";

interface SuggestOptions {
  /** The key attributes of the limit. */
  readonly key: readonly string[];
  /** Windows in ms, with their notation. */
  readonly windows: readonly { readonly text: string; readonly ms: number }[];
  /** Factor above the observed maximum. */
  readonly headroom: number;
}

export interface Suggestion {
  readonly window: string;
  /** The number of keys, and quantiles of their maximum in any window of this length. */
  readonly keys: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
  readonly busiest: readonly { readonly key: string; readonly max: number; readonly at: string }[];
  readonly limits: readonly SuggestedLimit[];
}

export interface SuggestedLimit {
  readonly from: "p99" | "p99.9" | "max";
  readonly limit: number;
  /** Keys whose maximum exceeds it. */
  readonly keysTouched: number;
}

export interface Suggestions {
  readonly requests: number;
  /** Requests that lack a key attribute. */
  readonly withoutKey: number;
  readonly windows: readonly Suggestion[];
  /** A burst and a sustained limit in shadow mode, ready for a rule file. */
  readonly rules: readonly Rule[];
}

const BUSIEST = 5;

export class Suggester {
  readonly #options: SuggestOptions;
  readonly #maxima: readonly { readonly text: string; readonly maxima: RollingMaxima }[];
  #requests = 0;
  #withoutKey = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(options: SuggestOptions) {
    this.#options = options;
    this.#maxima = options.windows.map(({ text, ms }) => ({ text, maxima: new RollingMaxima(ms) }));
  }

  add(attributes: Attributes, atMs: number): void {
    this.#requests++;
    this.#lastMs = Math.max(this.#lastMs, atMs);
    const key = this.#keyOf(attributes);
    if (key === undefined) this.#withoutKey++;
    else for (const { maxima } of this.#maxima) maxima.add(key, 1, this.#lastMs);
  }

  #keyOf(attributes: Attributes): string | undefined {
    let key = "";
    for (const name of this.#options.key) {
      // `constructor` is an inherited property, not an attribute.
      const value = Object.hasOwn(attributes, name) ? attributes[name] : undefined;
      if (value === undefined || value === null) return undefined;
      key += key === "" ? `${name}=${value}` : `, ${name}=${value}`;
    }
    return key;
  }

  read(): Suggestions {
    const windows = this.#maxima.map(({ text, maxima }) => suggestionOf(text, maxima, this.#options.headroom));
    return { requests: this.#requests, withoutKey: this.#withoutKey, windows, rules: rulesOf(windows, this.#options) };
  }
}

export function suggestionOf(window: string, maxima: RollingMaxima, headroom: number): Suggestion {
  const sorted = maxima.maxima();
  const [p50, p99, p999] = [0.5, 0.99, 0.999].map((share) => quantile(sorted, share)) as [number, number, number];
  const max = sorted.at(-1) ?? 0;
  const limit = (from: SuggestedLimit["from"], value: number): SuggestedLimit => {
    const number = Math.max(1, Math.ceil(value * headroom));
    return { from, limit: number, keysTouched: sorted.length - firstAbove(sorted, number) };
  };
  return {
    window,
    keys: sorted.length,
    p50,
    p99,
    p999,
    max,
    busiest: maxima
      .top(BUSIEST)
      .map(({ key, max: most, atMs }) => ({ key, max: most, at: new Date(atMs).toISOString() })),
    limits: sorted.length === 0 ? [] : [limit("p99", p99), limit("p99.9", p999), limit("max", max)],
  };
}

/** The smallest value that at least this share does not exceed. */
function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

function firstAbove(sorted: Float64Array, value: number): number {
  let from = 0;
  let to = sorted.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (sorted[middle]! <= value) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The shortest window limits bursts, the longest the sustained rate. In shadow mode: they only report what they would refuse. */
function rulesOf(windows: readonly Suggestion[], { key }: SuggestOptions): Rule[] {
  const chosen = windows.length > 1 ? [windows[0]!, windows.at(-1)!] : windows;
  return chosen.flatMap((suggestion, i) => {
    const limit = suggestion.limits.find(({ from }) => from === "p99.9")?.limit;
    if (limit === undefined) return [];
    const id = `${[...key].join("-") || "all"}-${i === 0 && chosen.length > 1 ? "burst" : "sustained"}`;
    return [
      { id, key: [...key], algorithm: "rolling-window", limit, window: suggestion.window, mode: "shadow" } as Rule,
    ];
  });
}
