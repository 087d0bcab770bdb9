/**
 * Puts requests that come almost in order into their order: servers log a request when it ends, and files overlap. Holds back the last few
 * thousand; an item that belongs before what has left already is late: it is counted, and keeps its place in the reading.
 * Pure.
 */

interface Timed {
  readonly atMs: number;
}

const HOLD_BACK = 8_192;

export class InOrder<T extends Timed> {
  readonly #holdBack: number;
  #held: T[] = [];
  #leftAtMs = Number.NEGATIVE_INFINITY;
  late = 0;

  constructor(holdBack = HOLD_BACK) {
    this.#holdBack = holdBack;
  }

  add(item: T): void {
    const held = this.#held;
    const last = held.at(-1);
    if (last === undefined || last.atMs <= item.atMs) held.push(item);
    else held.splice(this.#placeOf(item.atMs), 0, item);
  }

  /** Behind all that came at the same time. */
  #placeOf(atMs: number): number {
    let from = 0;
    let to = this.#held.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.#held[middle]!.atMs <= atMs) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  /** The items that need not wait any longer. */
  take(): T[] {
    return this.#leave(this.#held.length - this.#holdBack);
  }

  takeAll(): T[] {
    return this.#leave(this.#held.length);
  }

  #leave(count: number): T[] {
    if (count <= 0) return [];
    const leaving = this.#held.splice(0, count);
    for (const { atMs } of leaving) {
      if (atMs < this.#leftAtMs) this.late++;
      else this.#leftAtMs = atMs;
    }
    return leaving;
  }
}
