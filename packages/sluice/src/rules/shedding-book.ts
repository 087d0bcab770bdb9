/**
 * The load-shedding rules of a rule book: which of them apply to a request, at which gauge, in which class. Separate from counting rules,
 * because these are asked first and in process; a book without such rules has none of this. Pure.
 */
import { escapeKeyPart, spellEscaped } from "../keys.js";
import type { Sliced, Stride } from "../time-slices.js";
import { AttributeReader } from "./attribute-reader.js";
import { compilingMatches } from "./compiled-rule.js";
import { type Condition, explainFailure, holds, presence } from "./condition.js";
import { EntryList } from "./entry-list.js";
import { MatchIndex } from "./match-index.js";
import type { Attributes, SheddingRule } from "./rule.js";
import { type SheddingPlan, sheddingPlan } from "./shedding-plan.js";

/** One load-shedding rule that applies to a request. */
export interface SheddingMatch {
  readonly plan: SheddingPlan;
  /** Which of the rule's gauges: the values of its key, encoded as in `keys.ts`. */
  readonly gauge: string;
  /** The values of its key, for reports that name one; "" for a rule with one gauge. */
  readonly values: string;
  readonly classIndex: number;
  /** Undefined without `fairBy`; "" if the request lacks the attribute. */
  readonly fairKey: string | undefined;
}

interface CompiledShedding {
  readonly plan: SheddingPlan;
  readonly conditions: readonly Condition[];
  readonly escapedKey: readonly string[];
  readonly keySlots: readonly number[];
  readonly classSlot: number;
  readonly fairSlot: number;
}

const NO_SLOT = -1;

export class SheddingBook {
  readonly #reader: AttributeReader;
  readonly #compiled: readonly CompiledShedding[];
  readonly #byRule: ReadonlyMap<string, CompiledShedding>;
  readonly #index: MatchIndex;
  readonly #found = new EntryList();

  /** `rules`: those that are not off. Returns undefined if there are none. */
  static *compiling(rules: readonly SheddingRule[], stride: Stride): Sliced<SheddingBook | undefined> {
    if (rules.length === 0) return undefined;
    const reader = new AttributeReader();
    const compiled: CompiledShedding[] = [];
    for (const rule of rules) compiled.push(yield* compiling(rule, reader, stride));
    const entries = compiled.map(({ conditions }) => conditions);
    return new SheddingBook(reader, compiled, yield* MatchIndex.filing(entries, stride));
  }

  private constructor(reader: AttributeReader, compiled: readonly CompiledShedding[], index: MatchIndex) {
    this.#reader = reader;
    this.#compiled = compiled;
    this.#index = index;
    this.#byRule = new Map(compiled.map((one) => [one.plan.rule, one]));
  }

  /** The rules that apply to a request, in the book's order. Malformed attributes throw `invalid-request`. */
  find(attributes: Attributes): SheddingMatch[] {
    this.#reader.read(attributes);
    this.#index.find(this.#reader, this.#found);
    const matches = new Array<SheddingMatch>(this.#found.count);
    for (let i = 0; i < matches.length; i++) matches[i] = this.#matchOf(this.#compiled[this.#found.entries[i]!]!);
    return matches;
  }

  /** Why a rule does not apply to a request with these attributes; undefined if it does. */
  whyNot(rule: string, attributes: Attributes): string | undefined {
    this.#reader.read(attributes);
    const failed = this.#byRule.get(rule)!.conditions.find((condition) => !holds(condition, this.#reader));
    return failed === undefined ? undefined : explainFailure(failed, this.#reader.values[failed.slot]);
  }

  #matchOf({ plan, escapedKey, keySlots, classSlot, fairSlot }: CompiledShedding): SheddingMatch {
    const { values } = this.#reader;
    const keyValues = keySlots.map((slot) => values[slot]!);
    const named = classSlot === NO_SLOT ? undefined : values[classSlot];
    return {
      plan,
      gauge: keyValues.length === 0 ? "" : spellEscaped(escapedKey, keyValues),
      values: keyValues.join(","),
      classIndex: (named === undefined ? undefined : plan.classIndex.get(named)) ?? plan.defaultClass,
      fairKey: fairSlot === NO_SLOT ? undefined : (values[fairSlot] ?? ""),
    };
  }
}

function* compiling(rule: SheddingRule, reader: AttributeReader, stride: Stride): Sliced<CompiledShedding> {
  const [match] = yield* compilingMatches([rule], { reader, stride });
  return {
    plan: sheddingPlan(rule),
    conditions: [...match!, ...rule.key.map((attribute) => presence(attribute, reader.slotOf(attribute)))],
    escapedKey: rule.key.map(escapeKeyPart),
    keySlots: rule.key.map((attribute) => reader.slotOf(attribute)),
    classSlot: rule.class === undefined ? NO_SLOT : reader.slotOf(rule.class.attribute),
    fairSlot: rule.fairBy === undefined ? NO_SLOT : reader.slotOf(rule.fairBy),
  };
}
