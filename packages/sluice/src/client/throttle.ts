/**
 * Throttles a caller against a backend that sheds load: it drops requests itself, before they cost the backend anything, with the
 * probability max(0, (requests - 2 * accepts) / (requests + 1)) over the last half minute (Site Reliability Engineering, chapter 21). A
 * backend that accepts half of what it gets is left alone; one that accepts nothing still gets a few requests, which show when it recovers.
 * The window is short because dropped requests count too: after an outage, the time to recover grows with the window's length. Time and
 * chance are arguments.
 */

/** Requests per accepted one before any is dropped. */
const MULTIPLIER = 2;
/** Fewer requests than this are no evidence: a program that asks once a minute is no crowd. */
const LEAST_REQUESTS = 10;
const STEP_MS = 3_000;
const STEPS = 10;

interface Step {
  /** The number of the step since the epoch. */
  at: number;
  requests: number;
  accepts: number;
}

export class Throttle {
  readonly #steps: Step[] = Array.from({ length: STEPS }, () => ({ at: -1, requests: 0, accepts: 0 }));

  /** Whether to drop the next request, which then counts. `chance`: from 0 to 1. */
  drops(nowMs: number, chance: number): boolean {
    if (chance >= this.share(nowMs)) return false;
    this.#step(nowMs).requests++;
    return true;
  }

  /** A request that was sent counts when its outcome is known: a burst of first requests is not a refusal. */
  ended(nowMs: number, wasAccepted: boolean): void {
    const step = this.#step(nowMs);
    step.requests++;
    if (wasAccepted) step.accepts++;
  }

  /** The fraction of requests to drop now. */
  share(nowMs: number): number {
    const oldest = Math.floor(nowMs / STEP_MS) - STEPS + 1;
    let requests = 0;
    let accepts = 0;
    for (const step of this.#steps) {
      if (step.at < oldest) continue;
      requests += step.requests;
      accepts += step.accepts;
    }
    if (requests < LEAST_REQUESTS) return 0;
    return Math.max(0, (requests - MULTIPLIER * accepts) / (requests + 1));
  }

  #step(nowMs: number): Step {
    const at = Math.floor(nowMs / STEP_MS);
    const step = this.#steps[at % STEPS]!;
    if (step.at !== at) Object.assign(step, { at, requests: 0, accepts: 0 });
    return step;
  }
}
