/**
 * Limits that requests bring themselves (`limit` of a descriptor). Each pair of unit and limit is compiled once, by itself: the rules in force
 * are never touched, however many limits clients think of. The counters of a unit are shared by all its limits.
 */
import { type Rule, type RuleBook, ruleBook } from "sluice";
import type { Unit } from "./descriptor-config.js";
import { overrideRule } from "./envoy-rules.js";

/** Beyond it the one that was not used for longest gives way, and is compiled again when it comes back. */
export const MOST_OVERRIDES = 1_000;

/** The units of the request's enum, by number. */
const units: readonly (Unit | undefined)[] = [undefined, "second", "minute", "hour", "day", "month", "year"];

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

  bookOf(unit: Unit, requestsPerUnit: number): RuleBook {
    const name = `${unit} ${requestsPerUnit}`;
    const book = this.#books.get(name) ?? this.#compile([overrideRule(unit, requestsPerUnit)]);
    this.#books.delete(name);
    this.#books.set(name, book);
    if (this.#books.size > MOST_OVERRIDES) this.#books.delete(this.#books.keys().next().value!);
    return book;
  }
}
