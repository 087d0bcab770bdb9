/**
 * Which variant of a rule a key gets: a stable hash of rule and key, spread over the weights. The same in every process and after every
 * restart, and independent between rules; so it must never change once released. Pure.
 */

const TWO_TO_32 = 2 ** 32;

export class VariantChoice {
  readonly #seed: number;
  /** A key whose hash is below an end belongs to that variant or one before it. */
  readonly #ends: readonly number[];

  /** `weights` must sum above 0. */
  constructor(rule: string, weights: readonly number[]) {
    this.#seed = hashInto(OFFSET_BASIS, rule);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    let running = 0;
    const ends = weights.map((weight) => {
      running += weight;
      return (running / sum) * TWO_TO_32;
    });
    // Rounding must not leave a gap above the last variant with a share.
    const last = weights.findLastIndex((weight) => weight > 0);
    this.#ends = ends.map((end, i) => (i >= last ? TWO_TO_32 : end));
  }

  /** `spelled`: the key's values, encoded by `keys.ts`. */
  choose(spelled: string): number {
    const hash = scatter(hashInto(this.#seed, spelled));
    let chosen = 0;
    while (hash >= this.#ends[chosen]!) chosen++;
    return chosen;
  }
}

/** A seed for `stableHash`. */
export function hashText(text: string): number {
  return hashInto(OFFSET_BASIS, text);
}

/** The same in every process, evenly distributed over 32 bits. */
export function stableHash(seed: number, text: string): number {
  return scatter(hashInto(seed, text));
}

// FNV-1a, 32 bits.
const OFFSET_BASIS = 0x811c9dc5;
const PRIME = 0x01000193;

/** Over UTF-16 units, low byte first, followed by a separator, so that rule and key cannot run into each other. */
function hashInto(state: number, text: string): number {
  let hash = state;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    hash = Math.imul(hash ^ (unit & 0xff), PRIME);
    hash = Math.imul(hash ^ (unit >> 8), PRIME);
  }
  return Math.imul(hash ^ 0xff, PRIME);
}

/** MurmurHash3's finalizer: with FNV alone, the high bits of short keys are too similar to be divided into shares. */
export function scatter(hash: number): number {
  let mixed = hash ^ (hash >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
