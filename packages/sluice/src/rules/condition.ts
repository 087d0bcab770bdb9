/**
 * One line of a rule's `match`, compiled: an attribute, and the values of which one must hold. Pure.
 * Values are compared as text: `42` in a rule matches `42` and `"42"` in a request.
 */
import { type Address, type Cidr, contains, parseAddress, parseCidr } from "./cidr.js";
import { describeValue } from "./describe-value.js";
import { compileGlob, type Glob, isLiteral, matchesGlob } from "./glob.js";
import type { MatchValue } from "./rule.js";

export interface Condition {
  readonly attribute: string;
  /** Where the attribute's value stands among those read from a request (see `attribute-reader.ts`). */
  readonly slot: number;
  /** As written, for explanations. Empty for an attribute of the key, which need only be present. */
  readonly wanted: readonly string[];
  /** Any value will do. */
  readonly anyValue: boolean;
  readonly literals: readonly string[];
  /** The same, where a search from the front would be slow. */
  readonly literalSet: ReadonlySet<string> | undefined;
  readonly globs: readonly Glob[];
  readonly cidrs: readonly Cidr[];
}

const LONGEST_SEARCHED_LIST = 8;
const none: readonly never[] = [];

/** Lists that would be empty or equal are shared: there are conditions by the hundred thousand, mostly of one value. */
export function compileCondition(attribute: string, slot: number, value: MatchValue): Condition {
  const wanted = Array.isArray(value) ? value.map(String) : [String(value)];
  const literals: string[] = [];
  const globs: Glob[] = [];
  const cidrs: Cidr[] = [];
  let anyValue = false;
  for (const text of wanted.length === 1 ? wanted : new Set(wanted)) {
    // "*" alone asks for presence, also of values with a "/" in them.
    if (text === "*" || text === "**") anyValue = true;
    else if (attribute === "ip") cidrs.push(parseCidr(text)!);
    else if (isLiteral(text)) literals.push(text);
    else globs.push(compileGlob(text));
  }
  return {
    attribute,
    slot,
    wanted,
    anyValue,
    literals: literals.length === wanted.length ? wanted : orNone(literals),
    literalSet: literals.length > LONGEST_SEARCHED_LIST ? new Set(literals) : undefined,
    globs: orNone(globs),
    cidrs: orNone(cidrs),
  };
}

function orNone<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? none : list;
}

/** The attribute is there, whatever its value. */
export function presence(attribute: string, slot: number): Condition {
  return {
    attribute,
    slot,
    wanted: none,
    anyValue: true,
    literals: none,
    literalSet: undefined,
    globs: none,
    cidrs: none,
  };
}

/** Whether a condition holds for the attribute's value; undefined is absent. */
export function holds(condition: Condition, value: string | undefined): boolean {
  if (value === undefined) return false;
  if (condition.anyValue) return true;
  if (condition.literalSet === undefined ? condition.literals.includes(value) : condition.literalSet.has(value))
    return true;
  for (const glob of condition.globs) {
    if (matchesGlob(glob, value)) return true;
  }
  if (condition.cidrs.length === 0) return false;
  const address = addressOf(value);
  if (address === undefined) return false;
  for (const cidr of condition.cidrs) {
    if (contains(cidr, address)) return true;
  }
  return false;
}

let lastText: string | undefined;
let lastAddress: Address | undefined;

/** Remembers the last one: every rule that looks at a request's address asks for the same. */
export function addressOf(text: string): Address | undefined {
  if (text !== lastText) {
    lastAddress = parseAddress(text);
    lastText = text;
  }
  return lastAddress;
}

/** Why a condition does not hold: `tier: expected "free", got "pro"`. */
export function explainFailure(condition: Condition, value: string | undefined): string {
  if (condition.wanted.length === 0) return `key attribute ${condition.attribute} is absent`;
  const shown = condition.wanted.slice(0, 5).map((wanted) => (wanted === "*" ? "any value" : describeValue(wanted)));
  const more = condition.wanted.length - shown.length;
  const expected = shown.join(" or ") + (more > 0 ? ` or one of ${more} more` : "");
  return `${condition.attribute}: expected ${expected}, got ${describeValue(value)}`;
}
