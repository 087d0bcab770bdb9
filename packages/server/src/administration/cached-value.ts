/** Caches a value that other instances may change, with a TTL of a second. If it cannot be read, the last value stays. */

/** Changes made on another instance take effect here within this time. */
const FRESH_MS = 1_000;

export class CachedValue<T> {
  readonly #read: () => Promise<T>;
  readonly #onError: (error: unknown) => void;
  #value: T;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #expiries = 0;

  constructor(read: () => Promise<T>, options: { initial: T; onError(error: unknown): void }) {
    this.#read = read;
    this.#value = options.initial;
    this.#onError = options.onError;
  }

  async get(): Promise<T> {
    if (performance.now() - this.#readAtMs < FRESH_MS) return this.#value;
    const expiries = this.#expiries;
    let read: { readonly value: T } | undefined;
    try {
      read = { value: await this.#read() };
    } catch (error) {
      this.#onError(error);
    }
    // What was read before an expiry may lack the change: it answers those that asked before it, and nobody after.
    if (expiries !== this.#expiries) return read === undefined ? this.#value : read.value;
    if (read !== undefined) this.#value = read.value;
    this.#readAtMs = performance.now();
    return this.#value;
  }

  /** Forces the next `get` to read. */
  expire(): void {
    this.#expiries++;
    this.#readAtMs = Number.NEGATIVE_INFINITY;
  }
}
