/**
 * Received bytes that nobody has asked for yet, in a single buffer: frames may hold a single byte, and a buffer per frame would cost a
 * hundred times as much. Flow control bounds their size, not this file.
 */
const NOTHING = Buffer.alloc(0);
const FIRST_BYTES = 1_024;

export class WaitingBytes {
  #buffer: Buffer = NOTHING;
  #from = 0;
  #to = 0;

  get length(): number {
    return this.#to - this.#from;
  }

  /** Never overwritten, so callers may keep parts of it. */
  get unread(): Buffer {
    return this.#buffer.subarray(this.#from, this.#to);
  }

  add(bytes: Buffer): void {
    if (this.#to + bytes.length > this.#buffer.length) this.#grow(bytes.length);
    bytes.copy(this.#buffer, this.#to);
    this.#to += bytes.length;
  }

  skip(bytes: number): void {
    this.#from += bytes;
    if (this.#from < this.#to) return;
    this.#buffer = NOTHING;
    this.#from = 0;
    this.#to = 0;
  }

  #grow(added: number): void {
    const { unread } = this;
    const larger = Buffer.allocUnsafe(Math.max(FIRST_BYTES, 2 * (unread.length + added)));
    unread.copy(larger);
    this.#buffer = larger;
    this.#from = 0;
    this.#to = unread.length;
  }
}
