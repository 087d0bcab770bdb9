/**
 * A map whose entries expire without a timer per key, and which accounts for their bytes. Each insertion looks at a few other entries,
 * round-robin, and drops expired ones: a million one-off keys are swept as fast as they come. Eviction takes the entry nearest to its end
 * in a small sample (as Redis does, instead of an exact LRU).
 */

interface Ending {
  /** On the clock of the map's owner, monotonic or wall, like every `nowMs` passed in. */
  readonly endsAtMs: number;
  /** Its size in the map's accounting. To change it, call `resize`. */
  readonly bytes: number;
}

/** Two looks per insertion: the sweep is always faster than the growth. */
const LOOKS_PER_INSERTION = 2;
/** Sample size when a live entry must be evicted. */
const LOOKS_PER_EVICTION = 16;

export class ExpiringMap<V extends Ending> {
  readonly #entries = new Map<string, V>();
  #cursor = this.#entries.entries();
  #bytes = 0;
  /** How many entries have left so far: as long as it is unchanged, an entry found earlier is still under its key. */
  departures = 0;

  get count(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The entry, even if it has expired but was not swept yet. */
  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  entries(): Iterable<[string, V]> {
    return this.#entries.entries();
  }

  set(key: string, value: V, nowMs: number): void {
    this.#sweep(LOOKS_PER_INSERTION, nowMs);
    const old = this.#entries.get(key);
    if (old !== undefined) {
      this.#bytes -= old.bytes;
      this.departures++;
    }
    this.#entries.set(key, value);
    this.#bytes += value.bytes;
  }

  /** Call before changing an entry's size by this much. */
  resize(by: number): void {
    this.#bytes += by;
  }

  delete(key: string): boolean {
    const value = this.#entries.get(key);
    if (value === undefined) return false;
    this.#drop(key, value);
    return true;
  }

  clear(): void {
    this.#entries.clear();
    this.departures++;
    this.#cursor = this.#entries.entries();
    this.#bytes = 0;
  }

  /** Looks at up to `looks` entries, round-robin, and drops expired ones. */
  sweep(looks: number, nowMs: number): void {
    this.#sweep(Math.min(looks, this.#entries.size), nowMs);
  }

  /** Drops one entry; true if it was still live. */
  evict(nowMs: number): boolean {
    let soonest: [string, V] | undefined;
    for (let i = 0; i < LOOKS_PER_EVICTION; i++) {
      const entry = this.#next();
      if (entry === undefined) break;
      if (soonest === undefined || entry[1].endsAtMs < soonest[1].endsAtMs) soonest = entry;
      if (entry[1].endsAtMs <= nowMs) break;
    }
    if (soonest === undefined) return false;
    this.#drop(soonest[0], soonest[1]);
    return soonest[1].endsAtMs > nowMs;
  }

  #sweep(looks: number, nowMs: number): void {
    for (let i = 0; i < looks; i++) {
      const entry = this.#next();
      if (entry === undefined) return;
      if (entry[1].endsAtMs < nowMs) this.#drop(entry[0], entry[1]);
    }
  }

  #drop(key: string, value: V): void {
    this.#entries.delete(key);
    this.#bytes -= value.bytes;
    this.departures++;
  }

  /** A Map's iterator survives deletions and insertions; at the end it starts over. */
  #next(): [string, V] | undefined {
    let step = this.#cursor.next();
    if (step.done) {
      this.#cursor = this.#entries.entries();
      step = this.#cursor.next();
    }
    return step.done ? undefined : step.value;
  }
}
