/**
 * Compares and hashes bytes four at a time: a byte-by-byte loop takes most of the time of reading a long line. Loads need no alignment.
 * Nothing here reads past the given bytes.
 */

export const WORD = 4;

/** Caches the last DataView: a new one per line would cost more than it saves. */
export class LastView {
  #bytes: Uint8Array = NOTHING;
  #view = viewOf(NOTHING);

  of(bytes: Uint8Array): DataView {
    if (bytes === this.#bytes) return this.#view;
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
    return this.#view;
  }
}

const NOTHING = new Uint8Array(0);

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A byte sequence to match at other places. Empty until it is set; an empty one never matches. */
export class Literal {
  length = 0;
  #words = new Int32Array(0);
  #lastWord = 0;

  /** A sequence shorter than a word leaves it empty. */
  set(view: DataView, from: number, end: number): void {
    this.length = end - from < WORD ? 0 : end - from;
    if (this.length === 0) return;
    const count = Math.floor(this.length / WORD);
    if (count > this.#words.length) this.#words = new Int32Array(count);
    const words = this.#words;
    for (let i = 0, at = from; i < count; i++, at += WORD) words[i] = view.getInt32(at, true);
    this.#lastWord = view.getInt32(end - WORD, true);
  }

  isAt(view: DataView, from: number): boolean {
    const { length } = this;
    if (length === 0 || from + length > view.byteLength) return false;
    const words = this.#words;
    const end = from + length;
    let at = from;
    for (let i = 0; at + WORD <= end; i++, at += WORD) if (view.getInt32(at, true) !== words[i]) return false;
    // The last word overlaps the one before, unless the length is a multiple of the word size.
    return at === end || view.getInt32(end - WORD, true) === this.#lastWord;
  }
}

/** Whether two pieces of equal length are equal. */
export function isSame(one: DataView, oneFrom: number, other: DataView, otherFrom: number, length: number): boolean {
  if (length < WORD) {
    for (let i = 0; i < length; i++) if (one.getUint8(oneFrom + i) !== other.getUint8(otherFrom + i)) return false;
    return true;
  }
  const last = length - WORD;
  for (let i = 0; i < last; i += WORD)
    if (one.getInt32(oneFrom + i, true) !== other.getInt32(otherFrom + i, true)) return false;
  return one.getInt32(oneFrom + last, true) === other.getInt32(otherFrom + last, true);
}

/** For in-memory tables only: it may change between versions. */
export function hashOf(view: DataView, from: number, end: number): number {
  const length = end - from;
  let hash = length;
  if (length < WORD) {
    for (let at = from; at < end; at++) hash = mixed(hash, view.getUint8(at));
    return hash;
  }
  const last = end - WORD;
  for (let at = from; at < last; at += WORD) hash = mixed(hash, view.getInt32(at, true));
  return mixed(hash, view.getInt32(last, true));
}

/** Multiplication only propagates upwards: the shift folds high bits back into the low ones. */
function mixed(hash: number, word: number): number {
  const product = Math.imul(hash ^ word, 0x9e3779b1);
  return product ^ (product >>> 15);
}
