/**
 * How late this process responds to events: its event loop is busy, or the machine is running something else. A timer fires every few
 * milliseconds for as long as someone asks; the time by which it is overdue is the lateness of everything that became ready since. It does
 * not keep the process alive, and stops by itself when nobody asks any more.
 */
import { performance } from "node:perf_hooks";

const TICK_MS = 10;
/** Timers have millisecond resolution: up to this much is not late. */
const PUNCTUAL_MS = 2;
const UNASKED_MS = 60_000;

interface LoopLatenessOptions {
  readonly nowMonotonicMs?: () => number;
  /** Calls back at this interval, until the returned function is called. */
  readonly every?: (ms: number, tick: () => void) => () => void;
}

export class LoopLateness {
  readonly #nowMonotonicMs: () => number;
  readonly #every: (ms: number, tick: () => void) => () => void;
  #integral = 0;
  /** Undefined while nobody asks. */
  #stop: (() => void) | undefined;
  #dueAtMonotonicMs = 0;
  #askedAtMonotonicMs = 0;

  constructor({ nowMonotonicMs = () => performance.now(), every = unheld }: LoopLatenessOptions = {}) {
    this.#nowMonotonicMs = nowMonotonicMs;
    this.#every = every;
  }

  /**
   * The integral of lateness over time, in ms x ms: its growth over a span, divided by the span, is the mean lateness of what became ready
   * in it. Something that becomes ready while the loop is busy for another t ms waits for t, so a delay of d adds d x d / 2.
   */
  integral(): number {
    const nowMonotonicMs = this.#nowMonotonicMs();
    this.#askedAtMonotonicMs = nowMonotonicMs;
    if (this.#stop === undefined) {
      this.#dueAtMonotonicMs = nowMonotonicMs + TICK_MS;
      this.#stop = this.#every(TICK_MS, () => this.#tick());
    }
    // Add what is overdue now and has not been counted yet.
    return this.#integral + this.#overdue(nowMonotonicMs);
  }

  #tick(): void {
    const nowMonotonicMs = this.#nowMonotonicMs();
    this.#integral += this.#overdue(nowMonotonicMs);
    this.#dueAtMonotonicMs = nowMonotonicMs + TICK_MS;
    if (nowMonotonicMs - this.#askedAtMonotonicMs < UNASKED_MS) return;
    this.#stop?.();
    this.#stop = undefined;
  }

  #overdue(nowMonotonicMs: number): number {
    const lateMs = nowMonotonicMs - this.#dueAtMonotonicMs;
    return lateMs > PUNCTUAL_MS ? (lateMs * lateMs) / 2 : 0;
  }
}

function unheld(ms: number, tick: () => void): () => void {
  const timer = setInterval(tick, ms).unref();
  return () => clearInterval(timer);
}
