/**
 * Reads a request's attributes, once per request, into numbered slots: one slot for each attribute that some rule looks at.
 * Only own fields count, and only text, numbers and booleans; an attribute that no rule looks at may be anything.
 * The slots are reused from request to request, so what was read holds until the next `read`.
 */
import { SluiceError } from "../errors.js";
import { describeValue } from "./describe-value.js";
import { EntryList } from "./entry-list.js";
import type { Attributes } from "./rule.js";

export class AttributeReader {
  /** By slot, as text; undefined where the request has no such attribute. */
  readonly values: (string | undefined)[] = [];
  /** The slots that the last request filled. */
  readonly filled = new EntryList();
  // A Map, not an object: an attribute may be named "constructor" or "__proto__".
  readonly #slots = new Map<string, number>();

  /** Where the attribute's value will stand; for use while rules are compiled. */
  slotOf(attribute: string): number {
    let slot = this.#slots.get(attribute);
    if (slot === undefined) {
      slot = this.values.length;
      this.#slots.set(attribute, slot);
      this.values.push(undefined);
    }
    return slot;
  }

  read(attributes: Attributes): void {
    const { values, filled } = this;
    // Cleared here rather than after use: a request that was refused halfway must leave nothing to the next.
    for (let i = 0; i < filled.count; i++) values[filled.entries[i]!] = undefined;
    filled.count = 0;
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

/** The cost that a caller names. */
export function checkCost(cost: number): void {
  if (!Number.isSafeInteger(cost) || cost < 0) throw invalid("cost", WHOLE_NUMBER, cost);
}

/** The cost that an attribute holds. */
export function costIn(attribute: string, text: string): number {
  // Number("") is 0 and Number("0x10") is 16: only digits are taken for a number.
  const cost = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(cost)) throw invalid(`attributes.${attribute}`, WHOLE_NUMBER, text);
  return cost;
}

const WHOLE_NUMBER = "a whole number of at least 0";

export function invalid(place: string, expected: string, value: unknown): SluiceError {
  return new SluiceError("invalid-request", `${place}: expected ${expected}, got ${describeValue(value)}`);
}
