/**
 * The open streams of a connection by their id: a hash table with linear probing. Not a `Map`: that one allocates a smaller table for
 * nearly every stream that ends, each old table refers to the next, and what has reached the old generation of V8's heap once keeps all that
 * followed, with their streams and calls, until a full collection.
 */
import type { Stream } from "./stream.js";

/** As a power of two. Most connections have few streams open at once. */
const LEAST_BITS = 4;

export class StreamTable {
  #bits = LEAST_BITS;
  #slots: (Stream | undefined)[] = newSlots(LEAST_BITS);
  #size = 0;
  /** Differs by table: a peer, which chooses the ids, cannot choose such as share a slot. */
  readonly #multiplier = Math.floor(Math.random() * 2 ** 32) | 1;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream | undefined {
    return this.#slots[this.#slotOf(id)];
  }

  has(id: number): boolean {
    return this.get(id) !== undefined;
  }

  /** The stream must not be in the table. */
  add(stream: Stream): void {
    // At most half full: searches stay short.
    if ((this.#size + 1) * 2 > this.#slots.length) this.#resize(this.#bits + 1);
    this.#slots[this.#slotOf(stream.id)] = stream;
    this.#size++;
  }

  delete(id: number): boolean {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let gap = this.#slotOf(id);
    if (slots[gap] === undefined) return false;
    this.#size--;
    // Close the gap, so that a search can end at the first empty slot.
    for (let at = (gap + 1) & mask; slots[at] !== undefined; at = (at + 1) & mask) {
      const distanceToHome = (at - this.#homeOf(slots[at]!.id)) & mask;
      if (distanceToHome < ((at - gap) & mask)) continue;
      slots[gap] = slots[at];
      gap = at;
    }
    slots[gap] = undefined;
    // A peer that once opened a thousand must not make every walk over the table long.
    if (this.#bits > LEAST_BITS && this.#size * 16 < slots.length) this.#resize(this.#bits - 2);
    return true;
  }

  /** A copy: streams may end during a walk. */
  all(): Stream[] {
    return this.#slots.filter((stream) => stream !== undefined);
  }

  /** The stream's slot, or the empty one where it would be. */
  #slotOf(id: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let at = this.#homeOf(id);
    for (let stream = slots[at]; stream !== undefined && stream.id !== id; stream = slots[at]) at = (at + 1) & mask;
    return at;
  }

  #homeOf(id: number): number {
    return Math.imul(id, this.#multiplier) >>> (32 - this.#bits);
  }

  #resize(bits: number): void {
    const streams = this.all();
    this.#bits = Math.max(LEAST_BITS, bits);
    this.#slots = newSlots(this.#bits);
    for (const stream of streams) this.#slots[this.#slotOf(stream.id)] = stream;
  }
}

function newSlots(bits: number): undefined[] {
  return Array.from({ length: 2 ** bits });
}
