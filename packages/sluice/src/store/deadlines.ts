/**
 * One timer for all calls under way, instead of one each: to arm and clear a timer costs more than to send a command.
 * All calls have the same allowance, so they end in the order in which they began: a queue, whose head the timer waits for.
 *
 * Only time in which this process ran counts against a call. Where the timer itself came late (a long turn of the event loop, a machine
 * without a free core), the process could not have read an answer either: the time since the timer was armed does not count, up to
 * `mostMs` in all.
 */

class Watch {
  /** In the process's own time: without what it was late. */
  readonly endsAtOwnMs: number;
  readonly lastMs: number;
  readonly late: () => void;
  over = false;

  constructor(ends: { atOwnMs: number; lastMs: number }, late: () => void) {
    this.endsAtOwnMs = ends.atOwnMs;
    this.lastMs = ends.lastMs;
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
  #armedMs = 0;
  #dueMs = 0;
  /** How long this process was late so far, as far as calls were under way. */
  #lostMs = 0;

  /** `mostMs`: when a call ends whatever held the process up. */
  constructor(allowanceMs: number, mostMs = allowanceMs) {
    this.#allowanceMs = allowanceMs;
    this.#mostMs = Math.max(allowanceMs, mostMs);
  }

  /** Calls `late` once the allowance is used up, unless the returned watch is ended before. */
  watch(late: () => void): { end(): void } {
    const nowMs = performance.now();
    const ends = { atOwnMs: nowMs - this.#lostMs + this.#allowanceMs, lastMs: nowMs + this.#mostMs };
    const watch = new Watch(ends, late);
    // What was answered must not stand here until the timer comes by: with a long allowance that would be every call of seconds.
    while (this.#first < this.#queue.length && this.#queue[this.#first]!.over) this.#first++;
    if (this.#first >= MOST_OVER) this.#forget();
    this.#queue.push(watch);
    if (this.#timer === undefined) this.#arm(nowMs, this.#allowanceMs);
    return watch;
  }

  /** For the few calls whose end is not a whole allowance away. */
  watchUntil(endsAtMs: number, late: () => void): { end(): void } {
    const lastMs = Math.max(endsAtMs, performance.now() + this.#mostMs - this.#allowanceMs);
    let over = false;
    let timer: NodeJS.Timeout;
    const arm = (dueMs: number): void => {
      const look = (): void => {
        const nowMs = performance.now();
        const lateMs = nowMs - dueMs;
        if (over) return;
        if (lateMs > LATE_MS && nowMs < lastMs) arm(Math.min(nowMs + this.#allowanceMs, lastMs));
        else late();
      };
      timer = setTimeout(() => setImmediate(look), Math.max(0, Math.ceil(dueMs - performance.now())));
      timer.unref();
    };
    arm(Math.max(endsAtMs, performance.now()));
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

  #arm(nowMs: number, waitMs: number): void {
    // Rounded up: a timer that fires before the first deadline would only have to be armed again.
    const wholeMs = Math.ceil(waitMs);
    this.#armedMs = nowMs;
    this.#dueMs = nowMs + wholeMs;
    // Timers come first in a turn of the event loop: after a turn that took long, answers that have arrived are still to be read. So
    // the look is put off to the end of the turn; a process that was held up must not take that for an outage of Redis.
    this.#timer = setTimeout(() => setImmediate(() => this.#look()), wholeMs);
    // The connection keeps a program alive that waits for an answer; a program that has closed it need not wait for this.
    this.#timer.unref();
  }

  #look(): void {
    this.#timer = undefined;
    const nowMs = performance.now();
    if (nowMs - this.#dueMs > LATE_MS) this.#lostMs += nowMs - this.#armedMs;
    const ownMs = nowMs - this.#lostMs;
    const queue = this.#queue;
    while (this.#first < queue.length && isOver(queue[this.#first]!, { nowMs, ownMs })) {
      const watch = queue[this.#first++]!;
      if (!watch.over) watch.late();
    }
    this.#forget();
    const next = this.#queue[0];
    if (next === undefined) return;
    this.#arm(nowMs, Math.max(1, Math.min(next.endsAtOwnMs - ownMs, next.lastMs - nowMs)));
  }
}

function isOver({ over, endsAtOwnMs, lastMs }: Watch, { nowMs, ownMs }: { nowMs: number; ownMs: number }): boolean {
  return over || endsAtOwnMs <= ownMs || lastMs <= nowMs;
}
