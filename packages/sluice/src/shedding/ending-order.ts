/**
 * Items ordered by their end, the next one first: a binary heap. Adding items in any order costs O(log n) each, even in a flood.
 */
interface Ending {
  readonly endsAtMs: number;
}

export class EndingOrder<T extends Ending> {
  readonly #heap: T[] = [];

  /** The item that ends next. */
  get next(): T | undefined {
    return this.#heap[0];
  }

  add(ending: T): void {
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.endsAtMs <= ending.endsAtMs) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = ending;
  }

  removeNext(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.endsAtMs < heap[child]!.endsAtMs) child++;
      if (heap[child]!.endsAtMs >= last.endsAtMs) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}
