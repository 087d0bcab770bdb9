/**
 * The rule sets of a recording, gathered line by line and compiled. In: lines in their order. Out: rule books by the number that
 * decisions name them by; a set that no longer validates, or that is not whole, is told and has no book.
 */
import { type Rule, type RuleBook, ruleBook } from "sluice";
import { opaqueRules } from "../recording/hash-values.js";
import type { RuleLine, RulesLine } from "../recording/recording-lines.js";

interface RecordedBook {
  readonly book: RuleBook;
  /** Rules that look into hashed values: what they decide cannot be repeated. */
  readonly opaque: ReadonlySet<string>;
}

const MOST_BOOKS = 1_000;

export class RecordedBooks {
  readonly #hashed: readonly string[];
  readonly #onUnreadable: (why: string) => void;
  /** In force, and of parts of requests; each by its number. */
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
      // The oldest goes: no decision that is still to come was made under it.
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
