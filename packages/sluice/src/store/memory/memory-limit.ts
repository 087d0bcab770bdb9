/**
 * Watches the memory store's bound, and reports once per episode that it was reached. An episode begins with the first eviction of a live
 * entry and ends after a minute without one: a store that stays at its bound is reported once.
 */

/** The contents of the memory store, and its evictions since the start. */
export interface MemoryUse {
  /** Estimated. */
  readonly bytes: number;
  readonly maxBytes: number;
  readonly counters: number;
  readonly ids: number;
  readonly evicted: { readonly idle: number; readonly usedUp: number; readonly ids: number };
}

/** In calls of `watch`, one per second. */
const QUIET_LOOKS = 60;

export class MemoryLimit {
  readonly maxBytes: number;
  readonly #onReached: (use: MemoryUse) => void;
  #evicted = 0;
  #quietLooks = QUIET_LOOKS;

  constructor(maxBytes: number, onReached = warn) {
    this.maxBytes = maxBytes;
    this.#onReached = onReached;
  }

  /** Called about every second. */
  watch(use: MemoryUse): void {
    const { idle, usedUp, ids } = use.evicted;
    const evicted = idle + usedUp + ids;
    if (evicted === this.#evicted) {
      this.#quietLooks++;
      return;
    }
    this.#evicted = evicted;
    if (this.#quietLooks >= QUIET_LOOKS) this.#onReached(use);
    this.#quietLooks = 0;
  }
}

function warn({ maxBytes, evicted: { idle, usedUp, ids } }: MemoryUse): void {
  process.emitWarning(
    `the memory store has reached its bound of ${maxBytes} bytes (maxBytes): ${idle} idle counters, ${usedUp} used up ones ` +
      `and ${ids} request ids were forgotten before their end`,
    { type: "SluiceWarning", code: "SLUICE_MEMORY_LIMIT" },
  );
}
