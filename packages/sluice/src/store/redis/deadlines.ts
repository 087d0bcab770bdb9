/**
 * Deadlines of the calls under way, with one timer for all of them: to arm and clear a timer costs more than to send a command.
 * All calls have the same allowance, so they end in the order in which they began: a queue, whose head the timer waits for.
 *
 * Only time in which this process ran counts against a call. Where the timer itself came late (a long turn of the event loop, a machine
 * without a free core), the process could neither have sent a call nor read an answer: calls under way then get a whole allowance from
 * the end of that turn, up to `mostMs` in all.
 */

class Watch {
  readonly startMonotonicMs: number;
  readonly late: () => void;
  over = false;

  constructor(startMonotonicMs: number, late: () => void) {
    this.startMonotonicMs = startMonotonicMs;
    this.late = late;
  }

  end(): void {
    this.over = true;
  }
}

/** Answered calls at the queue's start are dropped once there are this many. */
const MOST_OVER = 256;
/** Timers count in whole milliseconds, and an ordinary turn takes a few. */
const LATE_MS = 5;

export class Deadlines {
  readonly #allowanceMs: number;
  readonly #mostMs: number;
  #queue: Watch[] = [];
  /** Where the queue's first call stands that may still be under way. */
  #first = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When the process went on after it was last held up: no allowance began before. */
  #wentOnMonotonicMs = 0;

  /** `mostMs`: when a call ends whatever held the process up. */
  constructor(allowanceMs: number, mostMs = allowanceMs) {
    this.#allowanceMs = allowanceMs;
    this.#mostMs = Math.max(allowanceMs, mostMs);
  }

  /** Calls `late` once the allowance is used up, unless the returned watch is ended before. */
  watch(late: () => void): { end(): void } {
    const nowMonotonicMs = performance.now();
    const watch = new Watch(nowMonotonicMs, late);
    // Answered calls leave the queue now, not when the timer fires: with a long allowance it would hold every call of seconds.
    while (this.#first < this.#queue.length && this.#queue[this.#first]!.over) this.#first++;
    if (this.#first >= MOST_OVER) this.#forget();
    this.#queue.push(watch);
    if (this.#timer === undefined) this.#arm(this.#allowanceMs);
    return watch;
  }

  /** For the few calls whose end is not a whole allowance away. */
  watchUntil(endsAtMonotonicMs: number, late: () => void): { end(): void } {
    const lastMonotonicMs = Math.max(endsAtMonotonicMs, performance.now() + this.#mostMs - this.#allowanceMs);
    let over = false;
    let timer: NodeJS.Timeout;
    const arm = (dueMonotonicMs: number): void => {
      timer = afterAnswers(dueMonotonicMs - performance.now(), (isHeldUp) => {
        const nowMonotonicMs = performance.now();
        if (over) return;
        if (isHeldUp && nowMonotonicMs < lastMonotonicMs)
          arm(Math.min(nowMonotonicMs + this.#allowanceMs, lastMonotonicMs));
        else late();
      });
    };
    arm(Math.max(endsAtMonotonicMs, performance.now()));
    return {
      end() {
        over = true;
        clearTimeout(timer);
      },
    };
  }

  #forget(): void {
    this.#queue = this.#queue.slice(this.#first);
    this.#first = 0;
  }

  #arm(waitMs: number): void {
    this.#timer = afterAnswers(waitMs, (isHeldUp) => this.#look(isHeldUp));
  }

  #look(isHeldUp: boolean): void {
    this.#timer = undefined;
    const nowMonotonicMs = performance.now();
    if (isHeldUp) this.#wentOnMonotonicMs = nowMonotonicMs;
    const queue = this.#queue;
    while (
      this.#first < queue.length &&
      (queue[this.#first]!.over || this.#endOf(queue[this.#first]!) <= nowMonotonicMs)
    ) {
      const watch = queue[this.#first++]!;
      if (!watch.over) watch.late();
    }
    this.#forget();
    const next = this.#queue[0];
    if (next !== undefined) this.#arm(this.#endOf(next) - nowMonotonicMs);
  }

  #endOf({ startMonotonicMs }: Watch): number {
    return Math.min(
      Math.max(startMonotonicMs, this.#wentOnMonotonicMs) + this.#allowanceMs,
      startMonotonicMs + this.#mostMs,
    );
  }
}

/**
 * A timer that looks at the end of its turn of the event loop, and passes on whether that is late. Timers run first in a turn: after a long
 * one, answers that have arrived are still unread. A process that was held up must not take that for an outage.
 */
function afterAnswers(waitMs: number, look: (isHeldUp: boolean) => void): NodeJS.Timeout {
  // Rounded up: a timer that fires before the first deadline would only have to be armed again.
  const wholeMs = Math.max(1, Math.ceil(waitMs));
  const dueMonotonicMs = performance.now() + wholeMs;
  const atEndOfTurn = (): void => look(performance.now() - dueMonotonicMs > LATE_MS);
  // The connection keeps a program alive that waits for an answer; a program that has closed it need not wait for this.
  return setTimeout(() => setImmediate(atEndOfTurn), wholeMs).unref();
}
