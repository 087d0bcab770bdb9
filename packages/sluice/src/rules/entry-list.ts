/**
 * A list of entry numbers that is filled and emptied for every request. It keeps its memory: an array emptied by `length = 0` releases it,
 * and growing it again costs more than the rest of a lookup.
 */
export class EntryList {
  readonly entries: number[] = [];
  count = 0;

  add(entry: number): void {
    this.entries[this.count++] = entry;
  }

  addAll(entries: readonly number[]): void {
    for (let i = 0; i < entries.length; i++) this.entries[this.count++] = entries[i]!;
  }

  /** Usually short and nearly sorted, which suits insertion sort; long lists use the engine's sort. */
  sort(): void {
    const { entries, count } = this;
    if (count > 32) {
      const sorted = Int32Array.from(entries.slice(0, count)).sort();
      for (let i = 0; i < count; i++) entries[i] = sorted[i]!;
      return;
    }
    for (let i = 1; i < count; i++) {
      const moved = entries[i]!;
      let at = i;
      while (at > 0 && entries[at - 1]! > moved) {
        entries[at] = entries[at - 1]!;
        at--;
      }
      entries[at] = moved;
    }
  }
}
