/**
 * Reads a request's attributes, once per request, into numbered slots: one slot for each attribute that some rule uses. Only own fields
 * count, and only text, numbers and booleans; an attribute that no rule uses may be anything. The slots are reused for each request, so
 * values are valid until the next `read`.
 */
import { SluiceError } from "../errors.js";
import { describeValue } from "./describe-value.js";
import { EntryList } from "./entry-list.js";
import type { Budget } from "./glob-tree.js";
import { PatternSet } from "./pattern-set.js";
import type { Attributes } from "./rule.js";

/**
 * The most steps that matching one request takes, whatever it contains and whatever the rules are: about three milliseconds. A step is one
 * position in a glob and one character of a value, one rule or override found, or one of its conditions tried.
 */
export const MOST_MATCHING_STEPS = 100_000;

export class AttributeReader {
  /** By slot, as text; undefined if the request has no such attribute. */
  readonly values: (string | undefined)[] = [];
  /** The slots that the last request filled. */
  readonly filled = new EntryList();
  readonly #budget: Budget = { steps: 0 };
  // A Map, not an object: an attribute may be named "constructor" or "__proto__".
  readonly #slots = new Map<string, number>();
  /** By slot; undefined if no rule has a glob or a CIDR block for it. */
  readonly #patterns: (PatternSet | undefined)[] = [];
  /** By slot: whether the patterns have been matched against the request's value. */
  readonly #arePatternsRead: boolean[] = [];

  /** The slot for the attribute's value; called while rules are compiled. */
  slotOf(attribute: string): number {
    let slot = this.#slots.get(attribute);
    if (slot === undefined) {
      slot = this.values.length;
      this.#slots.set(attribute, slot);
      this.values.push(undefined);
      this.#patterns.push(undefined);
      this.#arePatternsRead.push(false);
    }
    return slot;
  }

  /** The globs and CIDR blocks that the attribute is matched against; called while rules are compiled. */
  patternsOf(slot: number): PatternSet {
    this.#patterns[slot] ??= new PatternSet();
    return this.#patterns[slot];
  }

  /** The same, with those marked that match the request's value. Only for a slot that is filled and has patterns. */
  matchedPatterns(slot: number): PatternSet {
    const patterns = this.#patterns[slot]!;
    if (this.#arePatternsRead[slot]) return patterns;
    if (!patterns.read(this.values[slot]!, this.#budget)) throw tooComplex();
    this.#arePatternsRead[slot] = true;
    return patterns;
  }

  /** Counts matching steps taken elsewhere. */
  spend(steps: number): void {
    this.#budget.steps -= steps;
    if (this.#budget.steps < 0) throw tooComplex();
  }

  /** How many steps the last request read has taken so far. */
  get steps(): number {
    return MOST_MATCHING_STEPS - this.#budget.steps;
  }

  read(attributes: Attributes): void {
    const { values, filled } = this;
    // Cleared here rather than after use: a request that was refused halfway must not leak into the next.
    for (let i = 0; i < filled.count; i++) {
      values[filled.entries[i]!] = undefined;
      this.#arePatternsRead[filled.entries[i]!] = false;
    }
    filled.count = 0;
    this.#budget.steps = MOST_MATCHING_STEPS;
    if (typeof attributes !== "object" || attributes === null || Array.isArray(attributes)) {
      throw invalid("attributes", "an object", attributes);
    }
    for (const name in attributes) {
      const slot = this.#slots.get(name);
      if (slot === undefined || !Object.hasOwn(attributes, name)) continue;
      const value = attributes[name];
      if (value === undefined) continue;
      values[slot] = typeof value === "string" ? value : textOf(name, value);
      filled.add(slot);
    }
  }
}

/**
 * Refuse rather than match in part: otherwise a client could choose which rules see it, by a value that is too long to be matched in full.
 */
function tooComplex(): SluiceError {
  return new SluiceError("too-complex", `attributes: matching them takes more than ${MOST_MATCHING_STEPS} steps`);
}

/** One attribute as text, or undefined if absent. */
export function readAttribute(attributes: Attributes, name: string): string | undefined {
  if (!Object.hasOwn(attributes, name)) return undefined;
  const value = attributes[name];
  return value === undefined || typeof value === "string" ? value : textOf(name, value);
}

function textOf(name: string, value: unknown): string {
  if (typeof value === "boolean" || Number.isFinite(value)) return String(value);
  if (typeof value === "string") return value;
  throw invalid(`attributes.${name}`, "a string, a finite number or a boolean", value);
}

/** Validates a cost passed by the caller. */
export function checkCost(cost: number): void {
  if (!Number.isSafeInteger(cost) || cost < 0) throw invalid("cost", WHOLE_NUMBER, cost);
}

/** Reads the cost from an attribute. */
export function costIn(attribute: string, text: string): number {
  // Number("") is 0 and Number("0x10") is 16: accept only digits.
  const cost = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(cost)) throw invalid(`attributes.${attribute}`, WHOLE_NUMBER, text);
  return cost;
}

const WHOLE_NUMBER = "a whole number of at least 0";

export function invalid(place: string, expected: string, value: unknown): SluiceError {
  return new SluiceError("invalid-request", `${place}: expected ${expected}, got ${describeValue(value)}`);
}
