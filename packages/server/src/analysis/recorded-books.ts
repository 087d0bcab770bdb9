/**
 * Collects and compiles the rule sets of a recording. In: lines in order. Out: rule books by the number that decisions refer to; a set that
 * is incomplete or no longer validates is reported and has no book.
 */
import { type Rule, type RuleBook, ruleBook } from "sluice";
import { opaqueRules } from "../recording/hash-values.js";
import type { RuleLine, RulesLine } from "../recording/recording-lines.js";

interface RecordedBook {
  readonly book: RuleBook;
  /** Rules that interpret hashed values: their decisions cannot be reproduced. */
  readonly opaque: ReadonlySet<string>;
}

const MOST_BOOKS = 1_000;

export class RecordedBooks {
  readonly #hashed: readonly string[];
  readonly #onUnreadable: (why: string) => void;
  /** Rules in force, and rules of request parts; each by number. */
  readonly #inForce = new Map<number, RecordedBook>();
  readonly #ofParts = new Map<number, RecordedBook>();
  #gathered: { line: RulesLine; rules: Rule[] } | undefined;

  constructor({ hashed, onUnreadable }: { hashed: readonly string[]; onUnreadable: (why: string) => void }) {
    this.#hashed = hashed;
    this.#onUnreadable = onUnreadable;
  }

  inForce(version: number): RecordedBook | undefined {
    return this.#inForce.get(version);
  }

  ofPart(number: number): RecordedBook | undefined {
    return this.#ofParts.get(number);
  }

  begin(line: RulesLine): void {
    this.#end("is not whole");
    this.#gathered = { line, rules: [] };
    this.#endIfWhole();
  }

  add({ rule }: RuleLine): void {
    this.#gathered?.rules.push(rule);
    this.#endIfWhole();
  }

  #endIfWhole(): void {
    const gathered = this.#gathered;
    if (gathered === undefined || gathered.rules.length < gathered.line.count) return;
    this.#gathered = undefined;
    const { line, rules } = gathered;
    const books = line.book === true ? this.#ofParts : this.#inForce;
    try {
      books.set(line.rules, { book: ruleBook(rules), opaque: opaqueRules(rules, this.#hashed) });
      // Drop the oldest: no later decision refers to it.
      if (books.size > MOST_BOOKS) books.delete(books.keys().next().value!);
    } catch (error) {
      books.delete(line.rules);
      this.#onUnreadable(`rules ${line.rules}: ${(error as Error).message}`);
    }
  }

  #end(why: string): void {
    if (this.#gathered !== undefined) this.#onUnreadable(`rules ${this.#gathered.line.rules}: ${why}`);
    this.#gathered = undefined;
  }
}
