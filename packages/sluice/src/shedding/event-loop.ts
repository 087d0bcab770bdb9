/** How much of its time the event loop of this process works: measured over the time between two looks, and smoothed. */
import { performance } from "node:perf_hooks";

const LEAST_SPAN_MS = 100;
/** How much a new measurement counts. */
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
