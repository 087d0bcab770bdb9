/**
 * Remembers what was made of pieces of a log, by their bytes: a client, a path or a duration that comes again becomes no text a second time.
 * Bounded: when it is full it forgets everything, and the busiest are back at once. Pieces are ASCII; the caller sees to it.
 */

const FIRST_ENTRIES = 256;
const MOST_ENTRIES = 2 ** 15;
const MOST_BYTES = 2 ** 20;
/** Longer ones hardly come again. */
const LONGEST = 256;

export class ByteMemo<T> {
  readonly #make: (text: string) => T;
  /** How many fit before the tables grow. */
  #room = FIRST_ENTRIES;
  /** By hash: the entry's place and 1; 0 where there is none. Four for an entry: a search ends soon. */
  #slots = new Uint16Array(4 * FIRST_ENTRIES);
  #hashes = new Int32Array(FIRST_ENTRIES);
  /** By entry: where its bytes begin, one behind the other. */
  #starts = new Uint32Array(FIRST_ENTRIES + 1);
  #kept = new Uint8Array(2 ** 12);
  readonly #values: T[] = [];

  constructor(make: (text: string) => T) {
    this.#make = make;
  }

  get size(): number {
    return this.#values.length;
  }

  get(bytes: Buffer, from: number, end: number): T {
    if (end - from > LONGEST) return this.#make(bytes.toString("latin1", from, end));
    let hash = 0x811c9dc5;
    // FNV-1a.
    for (let at = from; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = (hash ^ (hash >>> 15)) & mask; ; slot = (slot + 1) & mask) {
      const entry = slots[slot]! - 1;
      if (entry < 0) return this.#add(hash, bytes, from, end);
      if (this.#hashes[entry] === hash && this.#isEqual(entry, bytes, from, end)) return this.#values[entry]!;
    }
  }

  #isEqual(entry: number, bytes: Buffer, from: number, end: number): boolean {
    const start = this.#starts[entry]!;
    if (this.#starts[entry + 1]! - start !== end - from) return false;
    const kept = this.#kept;
    for (let at = from, other = start; at < end; at++, other++) if (bytes[at] !== kept[other]) return false;
    return true;
  }

  #add(hash: number, bytes: Buffer, from: number, end: number): T {
    const value = this.#make(bytes.toString("latin1", from, end));
    const entry = this.#values.length;
    const start = this.#starts[entry]!;
    const behind = start + end - from;
    if (entry === MOST_ENTRIES || behind > MOST_BYTES) {
      this.#slots.fill(0);
      this.#values.length = 0;
      return value;
    }
    if (entry === this.#room) this.#grow();
    if (behind > this.#kept.length) {
      const kept = new Uint8Array(2 * this.#kept.length);
      kept.set(this.#kept);
      this.#kept = kept;
    }
    for (let at = from; at < end; at++) this.#kept[start + at - from] = bytes[at]!;
    this.#starts[entry + 1] = behind;
    this.#hashes[entry] = hash;
    this.#values.push(value);
    this.#file(entry, hash);
    return value;
  }

  #file(entry: number, hash: number): void {
    const mask = this.#slots.length - 1;
    let slot = (hash ^ (hash >>> 15)) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = entry + 1;
  }

  #grow(): void {
    this.#room *= 2;
    const starts = new Uint32Array(this.#room + 1);
    starts.set(this.#starts);
    this.#starts = starts;
    const hashes = new Int32Array(this.#room);
    hashes.set(this.#hashes);
    this.#hashes = hashes;
    this.#slots = new Uint16Array(4 * this.#room);
    for (let entry = 0; entry < this.#values.length; entry++) this.#file(entry, hashes[entry]!);
  }
}
