/**
 * Deadlines of the calls in flight, with one timer for all of them: arming and clearing a timer costs more than sending a command. All
 * calls have the same allowance, so they end in the order in which they began: a queue, with the timer armed for its head.
 *
 * Only time during which this process ran counts against a call. If the timer itself fires late (a long turn of the event loop, a machine
 * without a free core), the process could neither send calls nor read answers: calls in flight then get a full allowance from the end of
 * that turn, up to `mostMs` in total.
 */

class Watch {
  readonly startMonotonicMs: number;
  /** Absent once it has ended: it refers to the call and all its requests, which must not live as long as the queue remembers the watch. */
  late: (() => void) | undefined;

  constructor(startMonotonicMs: number, late: () => void) {
    this.startMonotonicMs = startMonotonicMs;
    this.late = late;
  }

  end(): void {
    this.late = undefined;
  }
}

/** Answered calls at the head of the queue are dropped once there are this many. */
const MOST_OVER = 256;
/** Timers have millisecond resolution, and an ordinary turn of the event loop takes a few milliseconds. */
const LATE_MS = 5;

export class Deadlines {
  readonly #allowanceMs: number;
  readonly #mostMs: number;
  #queue: Watch[] = [];
  /** Index of the first call in the queue that may still be in flight. */
  #first = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When the process resumed after it was last blocked: no allowance starts earlier. */
  #wentOnMonotonicMs = 0;

  /** `mostMs`: when a call ends, however long the process was blocked. */
  constructor(allowanceMs: number, mostMs = allowanceMs) {
    this.#allowanceMs = allowanceMs;
    this.#mostMs = Math.max(allowanceMs, mostMs);
  }

  /** Calls `late` when the allowance is used up, unless the returned watch is ended first. */
  watch(late: () => void): { end(): void } {
    const nowMonotonicMs = performance.now();
    const watch = new Watch(nowMonotonicMs, late);
    // Drop answered calls now, not when the timer fires: with a long allowance the queue would hold seconds' worth of calls.
    while (this.#first < this.#queue.length && this.#queue[this.#first]!.late === undefined) this.#first++;
    if (this.#first >= MOST_OVER) this.#forget();
    this.#queue.push(watch);
    if (this.#timer === undefined) this.#arm(this.#allowanceMs);
    return watch;
  }

  /** For the few calls whose deadline is not a full allowance away. */
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
      (queue[this.#first]!.late === undefined || this.#endOf(queue[this.#first]!) <= nowMonotonicMs)
    ) {
      queue[this.#first++]!.late?.();
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
 * A timer that runs its callback at the end of the event loop's turn, and reports whether that is late. Timers run first in a turn: after a
 * long one, answers that have arrived are still unread, and a process that was blocked must not take that for an outage.
 */
function afterAnswers(waitMs: number, look: (isHeldUp: boolean) => void): NodeJS.Timeout {
  // Round up: a timer that fires before the first deadline would only have to be armed again.
  const wholeMs = Math.max(1, Math.ceil(waitMs));
  const dueMonotonicMs = performance.now() + wholeMs;
  const atEndOfTurn = (): void => look(performance.now() - dueMonotonicMs > LATE_MS);
  // The open connection keeps the process alive while a program waits for an answer; a program that has closed it need not wait for this
  // timer.
  return setTimeout(() => setImmediate(atEndOfTurn), wholeMs).unref();
}
