/**
 * Which entries hold for a value of one attribute: found by the value itself, by the patterns that match it, or by its presence; never by
 * trying one entry after another.
 */
import type { Condition } from "./condition.js";
import type { EntryList } from "./entry-list.js";

const none: readonly number[] = [];

export class ValueIndex {
  readonly #literals = new Map<string, number[]>();
  readonly #present: number[] = [];
  /** By pattern (see `pattern-set.ts`). */
  #patterns: Map<number, number[]> | undefined;

  get hasPatterns(): boolean {
    return this.#patterns !== undefined;
  }

  /** Files an entry under each value that its condition accepts. */
  file(condition: Condition, entry: number): void {
    if (condition.anyValue) {
      this.#present.push(entry);
      return;
    }
    for (const literal of condition.literals) append(this.#literals, literal, entry);
    for (const pattern of condition.patterns) {
      this.#patterns ??= new Map();
      append(this.#patterns, pattern, entry);
    }
  }

  /** Appends the entries in no particular order; an entry that accepts several values may appear more than once. */
  find(value: string, found: EntryList): void {
    found.addAll(this.#present);
    const literal = this.#literals.get(value);
    if (literal !== undefined) found.addAll(literal);
  }

  /** The same for the patterns that match the value. */
  findByPatterns(matched: EntryList, found: EntryList): void {
    for (let i = 0; i < matched.count; i++) found.addAll(this.#patterns!.get(matched.entries[i]!) ?? none);
  }
}

function append<Name>(lists: Map<Name, number[]>, name: Name, entry: number): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [entry]);
  else list.push(entry);
}
