/**
 * Caches the keys of recent values, so that a returning caller's key is not built again: a cached key is the same string object, with a
 * known hash, and a map finds its counter without reading it. Measured: a third of a check in memory. Bounded over the whole rule book, in
 * two generations: when the young one is full, it becomes the old one, and old keys that were not used since are dropped. Dropping
 * everything at once would rebuild the busiest keys again and again if there are more keys than room.
 */
import { counterKey, spellEscaped } from "../keys.js";

interface Remembered {
  /** The end of `key`, which differs for another override or storage of the same rule. */
  readonly end: string;
  readonly key: string;
}

/** The cached keys of one rule, by the value of its one key attribute. */
export interface RuleKeys {
  young: Map<string, Remembered>;
  old: ReadonlyMap<string, Remembered>;
}

/** Per generation. Two full ones take some 30 MB. If clients times rules exceed this, every key is built or renewed again and again. */
const MOST_KEYS = 65_536;
const LONGEST_VALUE = 128;
const NONE: ReadonlyMap<string, Remembered> = new Map();

export function noKeys(): RuleKeys {
  return { young: new Map(), old: NONE };
}

export class KeyMemo {
  /** The rules with young keys, and those with old ones. */
  #young: RuleKeys[] = [];
  #old: RuleKeys[] = [];
  /** Young keys of all rules. */
  #count = 0;

  keyOf(keys: RuleKeys, escapedName: readonly string[], value: string, end: string): string {
    const remembered = keys.young.get(value) ?? this.#renewed(keys, value);
    if (remembered !== undefined && remembered.end === end) return remembered.key;
    const key = counterKey(spellEscaped(escapedName, [value]), end);
    if (value.length <= LONGEST_VALUE) this.#remember(keys, value, { end, key });
    return key;
  }

  /** An old key that is used becomes young again. */
  #renewed(keys: RuleKeys, value: string): Remembered | undefined {
    const remembered = keys.old.get(value);
    if (remembered !== undefined) this.#remember(keys, value, remembered);
    return remembered;
  }

  #remember(keys: RuleKeys, value: string, remembered: Remembered): void {
    const { young } = keys;
    const before = young.size;
    if (before === 0) this.#young.push(keys);
    young.set(value, remembered);
    this.#count += young.size - before;
    if (this.#count >= MOST_KEYS) this.#age();
  }

  #age(): void {
    for (const keys of this.#old) keys.old = NONE;
    for (const keys of this.#young) {
      keys.old = keys.young;
      keys.young = new Map();
    }
    this.#old = this.#young;
    this.#young = [];
    this.#count = 0;
  }
}
