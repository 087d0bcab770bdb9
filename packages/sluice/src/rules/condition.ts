/**
 * One line of a rule's `match`, compiled: an attribute, and the values of which one must match. Pure. Values are compared as text: `42` in
 * a rule matches `42` and `"42"` in a request.
 */
import type { AttributeReader } from "./attribute-reader.js";
import { describeValue } from "./describe-value.js";
import { isLiteral } from "./glob.js";
import type { PatternSet } from "./pattern-set.js";
import type { MatchValue } from "./rule.js";

export interface Condition {
  readonly attribute: string;
  /** The slot of the attribute's value among those read from a request (see `attribute-reader.ts`). */
  readonly slot: number;
  /** As written, for explanations. Empty for a key attribute, which only needs to be present. */
  readonly wanted: readonly string[];
  /** Any value matches. */
  readonly anyValue: boolean;
  readonly literals: readonly string[];
  /** The same as a set, if a linear search would be slow. */
  readonly literalSet: ReadonlySet<string> | undefined;
  /** Globs and CIDR blocks, by their numbers in the attribute's pattern set. */
  readonly patterns: readonly number[];
  /** The same as a set, if a linear search would be slow. */
  readonly patternNumbers: ReadonlySet<number> | undefined;
}

const LONGEST_SEARCHED_LIST = 8;
const none: readonly never[] = [];

/** Empty or equal lists are shared: there are hundreds of thousands of conditions, mostly with one value. */
export function compileCondition(attribute: string, value: MatchValue, reader: AttributeReader): Condition {
  const slot = reader.slotOf(attribute);
  const wanted = Array.isArray(value) ? value.map(String) : [String(value)];
  const literals: string[] = [];
  const patterns: number[] = [];
  let anyValue = false;
  for (const text of wanted.length === 1 ? wanted : new Set(wanted)) {
    // "*" alone requires presence, even of values that contain a "/".
    if (text === "*" || text === "**") anyValue = true;
    else if (attribute === "ip") patterns.push(reader.patternsOf(slot).add(text, "block"));
    else if (isLiteral(text)) literals.push(text);
    else patterns.push(reader.patternsOf(slot).add(text, "glob"));
  }
  return {
    attribute,
    slot,
    wanted,
    anyValue,
    literals: literals.length === wanted.length ? wanted : orNone(literals),
    literalSet: literals.length > LONGEST_SEARCHED_LIST ? new Set(literals) : undefined,
    patterns: orNone(patterns),
    patternNumbers: patterns.length > LONGEST_SEARCHED_LIST ? new Set(patterns) : undefined,
  };
}

function orNone<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? none : list;
}

/** The attribute is present, whatever its value. */
export function presence(attribute: string, slot: number): Condition {
  return {
    attribute,
    slot,
    wanted: none,
    anyValue: true,
    literals: none,
    literalSet: undefined,
    patterns: none,
    patternNumbers: undefined,
  };
}

/** Whether a condition holds for the last request read. */
export function holds(condition: Condition, request: AttributeReader): boolean {
  const value = request.values[condition.slot];
  if (value === undefined) return false;
  if (condition.anyValue) return true;
  if (condition.literalSet === undefined ? condition.literals.includes(value) : condition.literalSet.has(value))
    return true;
  return condition.patterns.length > 0 && hasMatch(condition, request.matchedPatterns(condition.slot));
}

/** Iterates over the shorter list: a condition may have a thousand patterns, and a value may match many. */
function hasMatch({ patterns, patternNumbers }: Condition, set: PatternSet): boolean {
  const { matched } = set;
  if (patternNumbers !== undefined && matched.count < patterns.length) {
    for (let i = 0; i < matched.count; i++) if (patternNumbers.has(matched.entries[i]!)) return true;
    return false;
  }
  for (let i = 0; i < patterns.length; i++) if (set.hasMatched(patterns[i]!)) return true;
  return false;
}

/** Why a condition does not hold: `tier: expected "free", got "pro"`. */
export function explainFailure(condition: Condition, value: string | undefined): string {
  if (condition.wanted.length === 0) return `key attribute ${condition.attribute} is absent`;
  const shown = condition.wanted.slice(0, 5).map((wanted) => (wanted === "*" ? "any value" : describeValue(wanted)));
  const more = condition.wanted.length - shown.length;
  const expected = shown.join(" or ") + (more > 0 ? ` or one of ${more} more` : "");
  return `${condition.attribute}: expected ${expected}, got ${describeValue(value)}`;
}
