/** The utilisation of this process's event loop: measured between two readings, and smoothed. */
import { performance } from "node:perf_hooks";

const LEAST_SPAN_MS = 100;
/** Weight of a new measurement. */
const WEIGHT = 0.3;

export class EventLoop {
  #before = performance.eventLoopUtilization();
  #lookedAtMonotonicMs = performance.now();
  #utilisation = 0;

  /** From 0 to 1. */
  utilisation(): number {
    const nowMonotonicMs = performance.now();
    if (nowMonotonicMs - this.#lookedAtMonotonicMs < LEAST_SPAN_MS) return this.#utilisation;
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#before);
    this.#before = now;
    this.#lookedAtMonotonicMs = nowMonotonicMs;
    if (Number.isFinite(utilization)) this.#utilisation += WEIGHT * (utilization - this.#utilisation);
    return this.#utilisation;
  }
}
