/** Merges files that are read side by side into one sequence by time: access logs, and recordings of several instances. */

/** One file's items that have been read but not taken. */
export class TimedSource<T> {
  readonly #batches: AsyncGenerator<T[]>;
  readonly #timeOf: (item: T) => number | undefined;
  #held: T[] = [];
  #at = 0;
  /** Time of the next item, or of the last one that had a time. */
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

  /** The items up to the given time; at least one, so that a file whose time goes backwards still progresses. */
  takeUntil(endMs: number): readonly T[] {
    const from = this.#at;
    if (endMs === Number.POSITIVE_INFINITY) return this.#takeAll(from);
    do {
      this.#at++;
      this.#look();
    } while (this.#at < this.#held.length && this.nextMs <= endMs);
    return from === 0 && this.#at === this.#held.length ? this.#held : this.#held.slice(from, this.#at);
  }

  /** No times to compare if no other source has items left. */
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

/** Batches from the source with the earliest next item, up to the next item of any other source. */
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
