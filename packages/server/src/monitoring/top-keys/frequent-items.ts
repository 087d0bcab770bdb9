/**
 * The most frequent of many items, in bounded memory, with a stated error: Space-Saving in its lazy form (Misra-Gries with a
 * table that is halved when it is full), after "Mergeable Summaries" (Agarwal and others, 2012). Pure.
 *
 * An item that is in the table was seen at least `count` times and at most `count + offset`; one that is not, at most `absent` times.
 * A table of 2c entries is cut to c by taking the (c+1)-largest count off all of them, so that each cut takes at least c+1 times what
 * `offset` grows by: offset <= n / (c+1) after n items.
 */

export interface Item {
  count: number;
}

export class FrequentItems<I extends Item> {
  readonly #keep: number;
  #items = new Map<string, I>();
  #offset = 0;

  /** `keep`: entries after a cut; twice as many before it. */
  constructor(keep: number) {
    this.#keep = keep;
  }

  /** How much a count in the table may be below the truth. */
  get offset(): number {
    return this.#offset;
  }

  get size(): number {
    return this.#items.size;
  }

  /** The entry if the item is in the table: the caller adds to its count. */
  find(key: string): I | undefined {
    return this.#items.get(key);
  }

  insert(key: string, item: I): void {
    this.#items.set(key, item);
    if (this.#items.size >= 2 * this.#keep) this.#cut();
  }

  #cut(): void {
    const counts = Float64Array.from(this.#items.values(), ({ count }) => count).sort();
    const taken = counts[counts.length - this.#keep - 1]!;
    // A new table: one from which half was deleted would be as large as before, and be walked as such.
    const rest = new Map<string, I>();
    for (const [key, item] of this.#items) {
      item.count -= taken;
      if (item.count > 0) rest.set(key, item);
    }
    this.#items = rest;
    this.#offset += taken;
  }

  /** The largest first, at most so many, and how often any other item may have been seen. */
  top(most: number): { items: [key: string, item: I][]; offset: number; absent: number } {
    const sorted = [...this.#items].sort(([, a], [, b]) => b.count - a.count);
    const next = sorted[most];
    return {
      items: sorted.slice(0, most),
      offset: this.#offset,
      absent: this.#offset + (next === undefined ? 0 : next[1].count),
    };
  }
}

/** Counts an item that has nothing but its count. */
export function countOne(items: FrequentItems<Item>, key: string): void {
  const item = items.find(key);
  if (item === undefined) items.insert(key, { count: 1 });
  else item.count++;
}
