/**
 * Sorts requests that arrive almost in order: servers log a request when it ends, and files overlap. Holds back the last few thousand; an
 * item that belongs before one already emitted is late: it is counted, and emitted in input order. Pure.
 */

interface Timed {
  readonly atMs: number;
}

const HOLD_BACK = 8_192;

export class InOrder<T extends Timed> {
  readonly #holdBack: number;
  #held: T[] = [];
  /** How many of the held items are sorted; the rest is sorted in one go when items are taken. */
  #ordered = 0;
  #leftAtMs = Number.NEGATIVE_INFINITY;
  late = 0;

  constructor(holdBack = HOLD_BACK) {
    this.#holdBack = holdBack;
  }

  add(item: T): void {
    const held = this.#held;
    if (this.#ordered === held.length && (held.length === 0 || held[held.length - 1]!.atMs <= item.atMs))
      this.#ordered++;
    held.push(item);
  }

  /** Items of equal time keep their input order: the sort is stable, and items held earlier come first. */
  #sort(): void {
    const held = this.#held;
    if (this.#ordered === held.length) return;
    const fresh = held.splice(this.#ordered).sort((one, other) => one.atMs - other.atMs);
    const tail = held.splice(this.#placeOf(fresh[0]!.atMs));
    let next = 0;
    for (const item of tail) {
      while (next < fresh.length && fresh[next]!.atMs < item.atMs) held.push(fresh[next++]!);
      held.push(item);
    }
    while (next < fresh.length) held.push(fresh[next++]!);
    this.#ordered = held.length;
  }

  /** After all items of the same time. */
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

  /** The items that need not be held back any longer. */
  take(): T[] {
    this.#sort();
    return this.#leave(this.#held.length - this.#holdBack);
  }

  takeAll(): T[] {
    this.#sort();
    return this.#leave(this.#held.length);
  }

  #leave(count: number): T[] {
    if (count <= 0) return [];
    const leaving = this.#held.splice(0, count);
    this.#ordered = this.#held.length;
    for (const { atMs } of leaving) {
      if (atMs < this.#leftAtMs) this.late++;
      else this.#leftAtMs = atMs;
    }
    return leaving;
  }
}
