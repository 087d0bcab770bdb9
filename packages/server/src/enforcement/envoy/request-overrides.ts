/**
 * Limits that requests bring themselves (`limit` of a descriptor). Each pair of counter rule and limit is compiled once, by itself: the rules in
 * force are never touched, however many limits clients think of. Limits of one unit share their counters, also with the files' limit of
 * the same descriptor and unit, as in the reference: a client cannot double its quota by asking with an override every second time.
 */
import { type Rule, type RuleBook, ruleBook } from "sluice";
import type { Unit } from "./descriptor-config.js";
import { type Override, overrideRule } from "./envoy-rules.js";

/** Beyond it the one that was not used for longest gives way, and is compiled again when it comes back. */
export const MOST_OVERRIDES = 1_000;

/** The units of the request's enum, by number. */
const units: readonly (Unit | undefined)[] = [undefined, "second", "minute", "hour", "day", "month", "year", "week"];

export function overrideUnit(unit: number): Unit | undefined {
  return units[unit];
}

export class RequestOverrides {
  /** In the order of the last use. */
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
