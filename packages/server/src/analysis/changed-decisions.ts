/** Counts requests that a draft decides differently from the rules in force, and the keys affected. In bounded memory. Pure. */
import { countOne, FrequentItems, type Item } from "../monitoring/top-keys/frequent-items.js";
import type { KeyFigures } from "./rule-figures.js";

export interface Comparison {
  /** Requests that the rules in force refuse. */
  readonly refused: number;
  readonly newlyRefused: number;
  readonly newlyAdmitted: number;
  /** Numbers of keys, and the top ones. */
  readonly keysNewlyRefused: number;
  readonly keysNewlyAdmitted: number;
  /** Whether both counts are exact; beyond twenty thousand keys they are lower bounds. */
  readonly keysExact: boolean;
  readonly newlyRefusedKeys: readonly KeyFigures[];
  readonly newlyAdmittedKeys: readonly KeyFigures[];
}

/** Exact up to twice this number. */
const KEEP_KEYS = 10_000;
const TOP_KEYS = 10;

export class ChangedDecisions {
  readonly #refusedKeys = new FrequentItems<Item>(KEEP_KEYS);
  readonly #admittedKeys = new FrequentItems<Item>(KEEP_KEYS);
  #newlyRefused = 0;
  #newlyAdmitted = 0;
  /** Refused by the rules in force. */
  refused = 0;

  /** `refuser`: the rule and key by which the draft refuses it. */
  newlyRefused(refuser: string): void {
    this.#newlyRefused++;
    countOne(this.#refusedKeys, refuser);
  }

  /** `refuser`: the rule and key by which the rules in force refuse it. */
  newlyAdmitted(refuser: string): void {
    this.#newlyAdmitted++;
    countOne(this.#admittedKeys, refuser);
  }

  read(): Comparison {
    return {
      refused: this.refused,
      newlyRefused: this.#newlyRefused,
      newlyAdmitted: this.#newlyAdmitted,
      keysNewlyRefused: this.#refusedKeys.size,
      keysNewlyAdmitted: this.#admittedKeys.size,
      keysExact: this.#refusedKeys.offset === 0 && this.#admittedKeys.offset === 0,
      newlyRefusedKeys: topOf(this.#refusedKeys),
      newlyAdmittedKeys: topOf(this.#admittedKeys),
    };
  }
}

function topOf(items: FrequentItems<Item>): KeyFigures[] {
  return items.top(TOP_KEYS).items.map(([key, { count }]) => ({ key, refused: count }));
}
