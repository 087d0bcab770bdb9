/**
 * A serial queue: runs asynchronous tasks one after the other, in the order of the calls.
 * A task that fails rejects for its own caller; the next one runs all the same.
 */
export class InTurn {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work);
    this.#last = mine.catch(() => undefined);
    return mine;
  }

  /** Resolves when every task queued until now has ended. */
  async settled(): Promise<void> {
    await this.#last;
  }
}
