/**
 * Heavy hitters in bounded memory with a known error: Space-Saving in its lazy form (Misra-Gries with a table that is halved when full),
 * after "Mergeable Summaries" (Agarwal and others, 2012). Pure.
 *
 * An item in the table was seen at least `count` and at most `count + offset` times; an item that is not, at most `absent` times. A table
 * of 2c entries is cut to c by subtracting the (c+1)-largest count from all of them, so each cut removes at least c+1 times what `offset`
 * grows by: offset <= n / (c+1) after n items.
 */

export interface Item {
  count: number;
}

export class FrequentItems<I extends Item> {
  readonly #keep: number;
  #items = new Map<string, I>();
  #offset = 0;

  /** `keep`: entries after a cut; the table holds twice as many before it. */
  constructor(keep: number) {
    this.#keep = keep;
  }

  /** How much a count in the table may underestimate. */
  get offset(): number {
    return this.#offset;
  }

  get size(): number {
    return this.#items.size;
  }

  /** The item's entry if it is in the table; the caller increments its count. */
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
    // A new Map: after deleting half its entries, the old one would keep its size and iterate accordingly.
    const rest = new Map<string, I>();
    for (const [key, item] of this.#items) {
      item.count -= taken;
      if (item.count > 0) rest.set(key, item);
    }
    this.#items = rest;
    this.#offset += taken;
  }

  /** The `most` largest items, largest first, and a bound for how often any other was seen. */
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

/** Counts an item without further data. */
export function countOne(items: FrequentItems<Item>, key: string): void {
  const item = items.find(key);
  if (item === undefined) items.insert(key, { count: 1 });
  else item.count++;
}
