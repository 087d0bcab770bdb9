/**
 * Caches which rules match a request, by the values that decide it: a log has few paths and methods compared with its requests, and
 * matching again costs more than a look-up. For attributes that are only key attributes, presence decides.
 * In: attributes. Out: indexes of the matching rules, in order. Bounded: it clears itself when full.
 */
import type { Attributes } from "sluice";
import type { RuleMatcher } from "sluice/internal";
import { ownText } from "../own-text.js";

type Places = readonly number[];
/** By an attribute's value; undefined if a request does not have it. */
interface ByValue extends Map<string | undefined, ByValue | Places> {}

const MOST_REMEMBERED = 16_384;
/** Longer values rarely repeat. */
const LONGEST_VALUE = 256;
/** If more attributes decide, their combinations rarely repeat. */
const MOST_ATTRIBUTES = 4;

export class MatchedRules {
  readonly #matcher: RuleMatcher;
  readonly #values: readonly string[];
  readonly #presences: readonly string[];
  readonly #remembers: boolean;
  /** By which attributes of `#presences` are present, as bits. */
  readonly #byPresence: (ByValue | Places | undefined)[];
  #size = 0;

  constructor(matcher: RuleMatcher, ruleCount: number) {
    this.#matcher = matcher;
    const conditions = Array.from({ length: ruleCount }, (_, place) => matcher.ruleAt(place).conditions).flat();
    const values = new Set(conditions.filter(({ anyValue }) => !anyValue).map(({ attribute }) => attribute));
    const all = new Set(conditions.map(({ attribute }) => attribute));
    this.#values = [...values];
    this.#presences = [...all].filter((attribute) => !values.has(attribute));
    this.#remembers = all.size <= MOST_ATTRIBUTES;
    this.#byPresence = new Array(this.#remembers ? 2 ** this.#presences.length : 0).fill(undefined);
  }

  /** Valid until the next request. Throws what matching would throw. */
  find(attributes: Attributes): Places {
    if (!this.#remembers) return this.#match(attributes);
    let present = 0;
    for (let i = 0; i < this.#presences.length; i++) {
      const value = attributes[this.#presences[i]!];
      if (value === undefined) continue;
      // Only strings are certain to be own properties: `constructor` is a function of every object.
      if (typeof value !== "string") return this.#match(attributes);
      present |= 1 << i;
    }
    let level = this.#byPresence[present];
    for (let i = 0; i < this.#values.length; i++) {
      const value = attributes[this.#values[i]!];
      if (value !== undefined && (typeof value !== "string" || value.length > LONGEST_VALUE))
        return this.#match(attributes);
      level = (level as ByValue | undefined)?.get(value);
    }
    return level === undefined ? this.#remember(attributes, present) : (level as Places);
  }

  #match(attributes: Attributes): Places {
    const { entries, count } = this.#matcher.find(attributes);
    return entries.slice(0, count);
  }

  /** Exceptions are not cached. */
  #remember(attributes: Attributes, present: number): Places {
    const found = this.#match(attributes);
    if (this.#size >= MOST_REMEMBERED) {
      this.#byPresence.fill(undefined);
      this.#size = 0;
    }
    this.#size++;
    const last = this.#values.length - 1;
    if (last < 0) {
      this.#byPresence[present] = found;
      return found;
    }
    let level = (this.#byPresence[present] as ByValue | undefined) ?? new Map();
    this.#byPresence[present] = level;
    for (let i = 0; i < last; i++) {
      const value = ownValue(attributes[this.#values[i]!]);
      const inner: ByValue = (level.get(value) as ByValue | undefined) ?? new Map();
      level.set(value, inner);
      level = inner;
    }
    level.set(ownValue(attributes[this.#values[last]!]), found);
    return found;
  }
}

function ownValue(value: unknown): string | undefined {
  return value === undefined ? undefined : ownText(value as string);
}
