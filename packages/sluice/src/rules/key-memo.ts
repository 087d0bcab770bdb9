/**
 * Caches the keys of recent values, so that a caller that returns is not spelled again: a remembered key is the same string
 * object, whose hash is known, and a map finds its counter without reading it. Measured: a third of a check in memory.
 * Bounded over the whole rule book; when full, everything is forgotten at once.
 */
import { counterKey, spellEscaped } from "../keys.js";

interface Remembered {
  /** The end of `key`: another override or storage of the same rule has another. */
  readonly end: string;
  readonly key: string;
}

/** The remembered keys of one rule, by the value of its one key attribute. */
export interface RuleKeys {
  readonly byValue: Map<string, Remembered>;
  generation: number;
}

const MOST_KEYS = 16_384;
const LONGEST_VALUE = 128;

export class KeyMemo {
  #generation = 0;
  #count = 0;

  keyOf(keys: RuleKeys, escapedName: readonly string[], value: string, end: string): string {
    if (keys.generation !== this.#generation) {
      keys.byValue.clear();
      keys.generation = this.#generation;
    }
    const remembered = keys.byValue.get(value);
    if (remembered !== undefined && remembered.end === end) return remembered.key;
    const key = counterKey(spellEscaped(escapedName, [value]), end);
    if (value.length <= LONGEST_VALUE) {
      if (remembered === undefined && ++this.#count > MOST_KEYS) this.#forget();
      else keys.byValue.set(value, { end, key });
    }
    return key;
  }

  #forget(): void {
    this.#generation++;
    this.#count = 0;
  }
}
