/**
 * Limits that requests carry themselves (a descriptor's `limit`). Each pair of counter rule and limit is compiled once, separately: the
 * rules in force stay untouched, however many limits clients invent. Limits of one unit share counters, also with the configured limit of
 * the same descriptor and unit, as in the reference: a client cannot double its quota by alternating with and without an override.
 */
import { type Rule, type RuleBook, ruleBook } from "sluice";
import type { Unit } from "./descriptor-config.js";
import { type Override, overrideRule } from "./envoy-rules.js";

/** Size of the LRU cache of compiled limits. */
export const MOST_OVERRIDES = 1_000;

/** By the request's enum number. */
const units: readonly (Unit | undefined)[] = [undefined, "second", "minute", "hour", "day", "month", "year", "week"];

export function overrideUnit(unit: number): Unit | undefined {
  return units[unit];
}

export class RequestOverrides {
  /** In LRU order. */
  readonly #books = new Map<string, RuleBook>();
  readonly #compile: (rules: readonly Rule[]) => RuleBook;

  constructor(compile = ruleBook) {
    this.#compile = compile;
  }

  bookOf(override: Override): RuleBook {
    const name = `${override.unit} ${override.requestsPerUnit} ${override.ruleId}`;
    const book = this.#books.get(name) ?? this.#compile([overrideRule(override)]);
    this.#books.delete(name);
    this.#books.set(name, book);
    if (this.#books.size > MOST_OVERRIDES) this.#books.delete(this.#books.keys().next().value!);
    return book;
  }
}
