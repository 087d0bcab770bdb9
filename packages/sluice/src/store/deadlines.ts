/**
 * One timer for all calls under way, instead of one each: to arm and clear a timer costs more than to send a command.
 * All calls have the same allowance, so they end in the order in which they began: a queue, whose head the timer waits for.
 */

interface Watched {
  readonly endsAtMs: number;
  readonly late: () => void;
  over: boolean;
}

export class Deadlines {
  readonly #allowanceMs: number;
  #queue: Watched[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(allowanceMs: number) {
    this.#allowanceMs = allowanceMs;
  }

  /** Calls `late` once the allowance is used up, unless the returned watch is ended before. */
  watch(late: () => void): { end(): void } {
    const watched: Watched & { end(): void } = {
      endsAtMs: performance.now() + this.#allowanceMs,
      late,
      over: false,
      end() {
        watched.over = true;
      },
    };
    this.#queue.push(watched);
    if (this.#timer === undefined) this.#arm(this.#allowanceMs);
    return watched;
  }

  #arm(waitMs: number): void {
    // Rounded up: a timer that fires before the first deadline would only have to be armed again.
    // Timers come first in a turn of the event loop: after a turn that took long, answers that have arrived are still to be read. So
    // the look is put off to the end of the turn; a process that was held up must not take that for an outage of Redis.
    this.#timer = setTimeout(() => setImmediate(() => this.#look()), Math.ceil(waitMs));
    // The connection keeps a program alive that waits for an answer; a program that has closed it need not wait for this.
    this.#timer.unref();
  }

  #look(): void {
    this.#timer = undefined;
    const nowMs = performance.now();
    // What was answered meanwhile stands in the queue until the timer comes by: a bounded wait, and no work per call.
    const queue = this.#queue;
    let first = 0;
    while (first < queue.length && (queue[first]!.over || queue[first]!.endsAtMs <= nowMs)) {
      if (!queue[first]!.over) queue[first]!.late();
      first++;
    }
    this.#queue = queue.slice(first);
    const next = this.#queue[0];
    if (next !== undefined) this.#arm(Math.max(1, next.endsAtMs - nowMs));
  }
}
