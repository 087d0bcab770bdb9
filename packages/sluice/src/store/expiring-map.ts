/**
 * A bounded map whose entries end by themselves, without a timer per key.
 * Each insertion of a new key looks at a few others, round-robin, and drops those that have ended: a million one-off keys
 * are swept as fast as they come. Where the bound is reached, the entry nearest to its end among a few looked at gives way.
 */

interface Ending {
  readonly endsAtMs: number;
}

/** Two looks for one insertion: the sweep is always faster than the growth. */
const LOOKS_PER_INSERTION = 2;
/** How many are compared when a live entry must give way. */
const LOOKS_PER_EVICTION = 16;

export class ExpiringMap<V extends Ending> {
  readonly #entries = new Map<string, V>();
  readonly #maxEntries: number;
  #cursor = this.#entries.entries();

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The entry, even if it has ended and was not swept yet. */
  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: V, nowMs: number): void {
    this.#sweep(LOOKS_PER_INSERTION, nowMs);
    if (this.#entries.size >= this.#maxEntries && !this.#entries.has(key)) this.#evict(nowMs);
    this.#entries.set(key, value);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  /** Looks at up to `looks` entries, round-robin, and drops those that have ended. */
  sweep(looks: number, nowMs: number): void {
    this.#sweep(Math.min(looks, this.#entries.size), nowMs);
  }

  #sweep(looks: number, nowMs: number): void {
    for (let i = 0; i < looks; i++) {
      const entry = this.#next();
      if (entry === undefined) return;
      if (entry[1].endsAtMs <= nowMs) this.#entries.delete(entry[0]);
    }
  }

  #evict(nowMs: number): void {
    let soonest: [string, V] | undefined;
    for (let i = 0; i < LOOKS_PER_EVICTION; i++) {
      const entry = this.#next();
      if (entry === undefined) break;
      if (soonest === undefined || entry[1].endsAtMs < soonest[1].endsAtMs) soonest = entry;
      if (entry[1].endsAtMs <= nowMs) break;
    }
    if (soonest !== undefined) this.#entries.delete(soonest[0]);
  }

  /** A map's iterator goes on past deletions and insertions; at the end it starts again. */
  #next(): [string, V] | undefined {
    let step = this.#cursor.next();
    if (step.done) {
      this.#cursor = this.#entries.entries();
      step = this.#cursor.next();
    }
    return step.done ? undefined : step.value;
  }
}
