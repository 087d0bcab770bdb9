/** Caches a value that other instances may change, with a TTL of a second. If it cannot be read, the last value stays. */

/** Changes made on another instance take effect here within this time. */
const FRESH_MS = 1_000;

export class CachedValue<T> {
  readonly #read: () => Promise<T>;
  readonly #onError: (error: unknown) => void;
  #value: T;
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(read: () => Promise<T>, options: { initial: T; onError(error: unknown): void }) {
    this.#read = read;
    this.#value = options.initial;
    this.#onError = options.onError;
  }

  async get(): Promise<T> {
    if (performance.now() - this.#readAtMs < FRESH_MS) return this.#value;
    try {
      this.#value = await this.#read();
    } catch (error) {
      this.#onError(error);
    }
    this.#readAtMs = performance.now();
    return this.#value;
  }

  /** Forces the next `get` to read. */
  expire(): void {
    this.#readAtMs = Number.NEGATIVE_INFINITY;
  }
}
