/**
 * The rules that a limiter decides by, and how they are replaced: at once, or compiled in slices while the old rules still decide. In: a
 * document, which is validated here, once; or rules that the caller has already validated. Out: the rule book in force. A document with
 * mistakes throws and changes nothing.
 */
import type { Rule } from "../rules/rule.js";
import { type CompiledRules, compilingRules, RuleBook } from "../rules/rule-book.js";
import { parsingRules } from "../rules/validate-rules.js";
import { runAtOnce, runInSlices, type Sliced } from "../time-slices.js";

interface RulesInForceOptions {
  readonly rules: readonly Rule[];
  readonly version: number;
  /** Called with the rules that have come into force, including the first ones. */
  readonly onChange: (rules: readonly Rule[], version: number) => void;
  /** Throws for rules that are valid in general, but not for this limiter. */
  readonly accept?: ((rules: readonly Rule[]) => void) | undefined;
}

export class RulesInForce {
  readonly #onChange: (rules: readonly Rule[], version: number) => void;
  readonly #accept: ((rules: readonly Rule[]) => void) | undefined;
  #book: RuleBook;
  /** How many calls have asked for new rules, and which call's book is in force: of overlapping calls, the latest wins. */
  #calls = 0;
  #bookCall = 0;

  constructor({ rules, version, onChange, accept }: RulesInForceOptions) {
    this.#onChange = onChange;
    this.#accept = accept;
    this.#book = new RuleBook(runAtOnce(compilingDocument(rules)), version);
    accept?.(this.#book.rules);
    onChange(this.#book.rules, this.#book.version);
  }

  get book(): RuleBook {
    return this.#book;
  }

  set(rules: readonly Rule[], version: number | undefined): void {
    const call = ++this.#calls;
    this.#swap(runAtOnce(compilingDocument(rules)), { call, version });
  }

  /** Compiles in slices. Resolves when these rules or newer ones are in force. */
  async swap(rules: readonly Rule[], version: number | undefined): Promise<void> {
    const call = ++this.#calls;
    this.#swap(await runInSlices(compilingDocument(rules)), { call, version });
  }

  /** `swap` for rules that `parseRules` returned, from one document or several, unchanged since. */
  async swapValidated(rules: readonly Rule[], version: number | undefined): Promise<void> {
    const call = ++this.#calls;
    this.#swap(await runInSlices(compilingValidated(rules)), { call, version });
  }

  #swap(compiled: CompiledRules, { call, version }: { call: number; version: number | undefined }): void {
    if (call < this.#bookCall) return;
    const book = new RuleBook(compiled, version ?? this.#book.version + 1);
    this.#accept?.(book.rules);
    this.#bookCall = call;
    this.#book = book;
    this.#onChange(this.#book.rules, this.#book.version);
  }
}

/** Rules that a part of `checkAll` brings along, compiled once. A document with mistakes throws. */
export function ruleBook(rules: readonly Rule[]): RuleBook {
  return new RuleBook(runAtOnce(compilingDocument(rules)), 0);
}

function* compilingDocument(rules: readonly Rule[]): Sliced<CompiledRules> {
  return yield* compilingRules(yield* parsingRules(rules));
}

/** Rules of several documents are each valid, but may share an id: validation then reports the mistake. */
function* compilingValidated(rules: readonly Rule[]): Sliced<CompiledRules> {
  const compiled = yield* compilingRules(rules);
  return compiled.byId.size === rules.length ? compiled : yield* compilingDocument(rules);
}
