/**
 * One timer for all calls under way, instead of one each: to arm and clear a timer costs more than to send a command.
 * All calls have the same allowance, so they end in the order in which they began: a queue, whose head the timer waits for.
 */

class Watch {
  readonly endsAtMs: number;
  readonly late: () => void;
  over = false;

  constructor(endsAtMs: number, late: () => void) {
    this.endsAtMs = endsAtMs;
    this.late = late;
  }

  end(): void {
    this.over = true;
  }
}

/** Answered calls at the queue's start are dropped once there are this many. */
const MOST_OVER = 256;

export class Deadlines {
  readonly #allowanceMs: number;
  #queue: Watch[] = [];
  /** Where the queue's first call stands that may still be under way. */
  #first = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(allowanceMs: number) {
    this.#allowanceMs = allowanceMs;
  }

  /** Calls `late` once the allowance is used up, unless the returned watch is ended before. */
  watch(late: () => void): { end(): void } {
    const watch = new Watch(performance.now() + this.#allowanceMs, late);
    // What was answered must not stand here until the timer comes by: with a long allowance that would be every call of seconds.
    while (this.#first < this.#queue.length && this.#queue[this.#first]!.over) this.#first++;
    if (this.#first >= MOST_OVER) this.#forget();
    this.#queue.push(watch);
    if (this.#timer === undefined) this.#arm(this.#allowanceMs);
    return watch;
  }

  #forget(): void {
    this.#queue = this.#queue.slice(this.#first);
    this.#first = 0;
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
    const queue = this.#queue;
    while (this.#first < queue.length && (queue[this.#first]!.over || queue[this.#first]!.endsAtMs <= nowMs)) {
      const watch = queue[this.#first++]!;
      if (!watch.over) watch.late();
    }
    this.#forget();
    const next = this.#queue[0];
    if (next !== undefined) this.#arm(Math.max(1, next.endsAtMs - nowMs));
  }
}
