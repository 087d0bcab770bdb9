/** Files that are read side by side, as one row of items by time: access logs, and the recordings of several instances. */

/** One file's items that were read and not taken. */
export class TimedSource<T> {
  readonly #batches: AsyncGenerator<T[]>;
  readonly #timeOf: (item: T) => number | undefined;
  #held: T[] = [];
  #at = 0;
  /** Of the next item, or of the last that had a time. */
  nextMs = 0;
  isOver = false;

  constructor(batches: AsyncGenerator<T[]>, timeOf: (item: T) => number | undefined) {
    this.#batches = batches;
    this.#timeOf = timeOf;
  }

  async fill(): Promise<void> {
    while (!this.isOver && this.#at >= this.#held.length) {
      const next = await this.#batches.next();
      this.isOver = next.done === true;
      this.#held = next.value ?? [];
      this.#at = 0;
    }
    this.#look();
  }

  #look(): void {
    const next = this.#held[this.#at];
    if (next !== undefined) this.nextMs = this.#timeOf(next) ?? this.nextMs;
  }

  /** The items up to the time; at least one, so that a file that goes back in time goes on. */
  takeUntil(endMs: number): readonly T[] {
    const from = this.#at;
    if (endMs === Number.POSITIVE_INFINITY) return this.#takeAll(from);
    do {
      this.#at++;
      this.#look();
    } while (this.#at < this.#held.length && this.nextMs <= endMs);
    return from === 0 && this.#at === this.#held.length ? this.#held : this.#held.slice(from, this.#at);
  }

  /** Where no other source has items, times need not be compared. */
  #takeAll(from: number): readonly T[] {
    this.#at = this.#held.length;
    for (let last = this.#at - 1; last >= from; last--) {
      const ms = this.#timeOf(this.#held[last]!);
      if (ms === undefined) continue;
      this.nextMs = ms;
      break;
    }
    return from === 0 ? this.#held : this.#held.slice(from);
  }
}

/** Batches from the source whose next item is the earliest, as far as no other source has an earlier one. */
export async function* mergedByTime<T, S extends TimedSource<T>>(
  sources: readonly S[],
): AsyncGenerator<{ source: S; items: readonly T[] }> {
  for (;;) {
    await Promise.all(sources.map((source) => source.fill()));
    const open = sources.filter(({ isOver }) => !isOver);
    let first = open[0];
    if (first === undefined) return;
    for (const source of open) if (source.nextMs < first.nextMs) first = source;
    let endMs = Number.POSITIVE_INFINITY;
    for (const source of open) if (source !== first) endMs = Math.min(endMs, source.nextMs);
    yield { source: first, items: first.takeUntil(endMs) };
  }
}
