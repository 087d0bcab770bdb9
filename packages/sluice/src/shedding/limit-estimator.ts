/**
 * `limit: auto`: estimates how many requests a server can work on at once, from how their latency responds to the limit.
 *
 * Now and then the limit is halved for a moment (a probe). The latencies R and numbers in flight n, of the probe and of the time before it,
 * give
 *   elasticity of latency = ln(Rprobe / R) / ln(nprobe / n)
 * Below the knee of the server's throughput curve requests do not wait for each other (elasticity 0), above it they only wait (1). The
 * limit that a pair implies is limit * HEADROOM * PROBE ^ elasticity: if the halved limit is below the knee and the full one above it, that
 * is HEADROOM times the server's places, whatever the limit was. So a pair estimates the places themselves, not a step to take: the mean of
 * many pairs improves over time, and noise does not add up to a random walk. A limit more than twice the knee shrinks with every pair.
 *
 * A probe has its own baseline, so a server that becomes slower, or is never idle, does not mislead it. While the limit holds nothing back,
 * there is no probe, and the limit stays. Time is an argument.
 */
import { FlowWindow } from "./flow-window.js";

/** The means of what was measured in a window. */
interface Flow {
  readonly inFlight: number;
  readonly latencyMs: number;
  /** The part of the latency during which the request had ended and waited for this process. */
  readonly latenessMs: number;
}

export const FIRST_LIMIT = 16;
const LEAST_LIMIT = 4;
const MOST_LIMIT = 100_000;
/** The limit relative to the server's places. Too few places cost throughput at once, a few too many cost little latency. */
const HEADROOM = 1.6;
/** The fraction of the number in flight that a probe should leave. */
const PROBE = 0.5;
/**
 * The fraction of the limit that a probe leaves is steered towards that, because classes with room above the limit keep it; between these
 * bounds.
 */
const PROBED_LIMIT = { least: 0.2, most: 0.8 } as const;
/**
 * A probe that left more in flight than this counts as if it had left this much: with values so close together, only noise would be
 * visible.
 */
const SHALLOWEST = 0.85;
/**
 * A probe that left less than this measured how the load went away, not what the limit does: elasticity over so wide a range misses the
 * knee.
 */
const DEEPEST = 1 / 3;
/** One pair moves the limit by at most a factor of e to this power. */
const MOST_STEP = 0.45;
/** Requests in a probe. At the start as many are measured before it, later twice as many, because that costs nothing. */
const PROBE_ENDS = 60;
/** Both windows last at least this many latencies, and this long. */
const LEAST_LATENCIES = 4;
const LEAST_WINDOW_MS = 50;
/** And this many times the longest gap within: one pause of the process must not decide. Fewer at the start, when time matters. */
const GAPS = { start: 5, later: 8 } as const;
/** A probe that takes longer than this and this many latencies is abandoned: the load has gone. */
const LONGEST_PROBE = { ms: 10_000, latencies: 10 } as const;
/** The limit is the mean of this many pairs; older ones count less. */
const MOST_PAIRS = 8;
/** Pause between probes, as a multiple of the last probe, once the mean covers MOST_PAIRS; proportionally shorter with fewer pairs. */
const PAUSE = 12;
/**
 * Steps beyond `slack` are summed, up and down separately; a sum above `sum` means that the server has changed, and the mean starts over.
 */
const CHANGE = { slack: 0.1, sum: 0.5 } as const;
/**
 * At the start the limit grows in longer steps, until a second pair implies a lower limit, or until a step of at least the last length
 * increases throughput by less than the step to this power: on a starved machine, chance alone would double the limit again and again.
 */
const START_GAIN = 1.5;
const START_YIELD = 0.1;
const START_LONG_STEP = 0.27;
/** If this process's lateness is a larger part of the latency, it may be the queue itself. */
const MOST_LATENESS = 0.5;
/** Lateness is measured separately from the requests, and may come out longer than their latency. */
const MOST_LATE_SHARE = 0.9;
/** This much of the limit must be in use for the limit to be what holds requests back. */
const LEAST_USE = 0.7;
const LATENCY_WEIGHT = 0.05;

export class LimitEstimator {
  readonly #window: FlowWindow;
  #estimate = FIRST_LIMIT;
  #isProbing = false;
  #probedShare: number = PROBE;
  #probedAtMs = 0;
  /** A smoothed latency, for the length of windows. Undefined before the first end. */
  #usualLatencyMs: number | undefined;
  /** What was measured before the probe. */
  #before: Flow = { inFlight: 0, latencyMs: 0, latenessMs: 0 };
  #isStarting = true;
  #isFirstStepDown = true;
  /** The throughput that the last step of the start must have reached, in requests per millisecond. */
  #startThroughput = 0;
  /** How many pairs the estimate is the mean of; 0 at the start. */
  #pairs = 0;
  #sums = { up: 0, down: 0 };

  /** `lateness`: the integral over time of how late this process is (`loop-lateness.ts`). */
  constructor(lateness?: () => number) {
    this.#window = new FlowWindow(lateness);
  }

  /** The limit now, including a probe. */
  get limit(): number {
    return this.#isProbing ? Math.max(1, this.#estimate * this.#probedShare) : this.#estimate;
  }

  /** The limit between probes. */
  get estimate(): number {
    return this.#estimate;
  }

  /** Call before the number in flight changes; it has been `inFlight` until now. */
  changes(nowMs: number, inFlight: number): void {
    this.#window.changes(nowMs, inFlight);
    const longestMs = Math.max(LONGEST_PROBE.ms, LONGEST_PROBE.latencies * (this.#usualLatencyMs ?? 0));
    if (this.#isProbing && nowMs - this.#probedAtMs > longestMs) this.#endProbe(nowMs, 0);
  }

  /** A request has ended, with this latency. */
  ended(nowMs: number, latencyMs: number): void {
    if (this.#usualLatencyMs === undefined) this.#window.restart(nowMs, 0);
    this.#usualLatencyMs ??= latencyMs;
    this.#usualLatencyMs += LATENCY_WEIGHT * (latencyMs - this.#usualLatencyMs);
    this.#window.ended(nowMs);
    if (!this.#isMeasured(this.#usualLatencyMs)) return;
    if (this.#isProbing) this.#compare(nowMs);
    else if (this.#window.inFlight >= LEAST_USE * this.#estimate) this.#probe(nowMs);
    else this.#window.restart(nowMs, 0);
  }

  #isMeasured(usualLatencyMs: number): boolean {
    const { ends, ranMs, longestGapMs } = this.#window;
    const times = this.#isProbing || this.#isStarting ? 1 : 2;
    return (
      ends >= PROBE_ENDS * times &&
      ranMs >= LEAST_WINDOW_MS &&
      ranMs >= LEAST_LATENCIES * usualLatencyMs &&
      ranMs >= (this.#isStarting ? GAPS.start : GAPS.later) * longestGapMs
    );
  }

  #probe(nowMs: number): void {
    this.#before = this.#measured();
    this.#isProbing = true;
    this.#probedAtMs = nowMs;
    this.#window.restart(nowMs, 0);
  }

  #measured(): Flow {
    const { inFlight, latencyMs, latenessMs } = this.#window;
    return { inFlight, latencyMs, latenessMs };
  }

  #endProbe(nowMs: number, pauseMs: number): void {
    this.#isProbing = false;
    this.#window.restart(nowMs, pauseMs);
  }

  #compare(nowMs: number): void {
    const probe = this.#measured();
    const left = probe.inFlight / this.#before.inFlight;
    this.#probedShare = within(this.#probedShare * Math.sqrt(PROBE / left), PROBED_LIMIT.least, PROBED_LIMIT.most);
    if (left >= DEEPEST) this.#move(stepOf(this.#before, probe));
    const pause = this.#isStarting ? 0 : (PAUSE * (this.#pairs - 1)) / (MOST_PAIRS - 1);
    this.#endProbe(nowMs, pause * (nowMs - this.#probedAtMs));
  }

  /** `step`: from the estimate to what the pair implies, as a logarithm. */
  #move(step: number): void {
    if (this.#isStarting) this.#start(step);
    if (this.#isStarting) return;
    this.#pairs = this.#hasChanged(step) ? 1 : Math.min(MOST_PAIRS, this.#pairs + 1);
    this.#scale(Math.exp(step / this.#pairs));
  }

  #start(step: number): void {
    const throughput = this.#before.inFlight / this.#before.latencyMs;
    if (throughput < this.#startThroughput || (step < 0 && !this.#isFirstStepDown)) {
      this.#isStarting = false;
    } else if (step < 0) {
      this.#isFirstStepDown = false;
      this.#startThroughput = 0;
    } else {
      this.#startThroughput = step < START_LONG_STEP ? 0 : throughput * Math.exp(START_YIELD * START_GAIN * step);
      this.#scale(Math.exp(START_GAIN * step));
    }
  }

  /** Two-sided CUSUM. */
  #hasChanged(step: number): boolean {
    const up = Math.max(0, this.#sums.up + step - CHANGE.slack);
    const down = Math.max(0, this.#sums.down - step - CHANGE.slack);
    const hasChanged = up > CHANGE.sum || down > CHANGE.sum;
    // Keep half: while the estimate is still moving, the next step is just as long.
    this.#sums = hasChanged ? { up: up / 2, down: down / 2 } : { up, down };
    return hasChanged;
  }

  #scale(factor: number): void {
    this.#estimate = within(this.#estimate * factor, LEAST_LIMIT, MOST_LIMIT);
  }
}

/**
 * From the limit to what the pair implies, as a logarithm.
 *
 * Unlike a queue, this process's lateness does not shrink with the limit, and hides the queue: the limit would grow. So lateness is removed
 * from both windows, and the requests that it delays are added to what is left: while they wait for this process they take places of the
 * limit, and the server behind it would run idle without them. If this process is the server itself, lateness is the queue, and without it
 * there is nothing to find. Then the pair as observed decides.
 */
function stepOf(before: Flow, probe: Flow): number {
  const seen = bounded(stepBetween(before, probe));
  const lateShare = (before.latenessMs + probe.latenessMs) / (before.latencyMs + probe.latencyMs);
  if (!(lateShare > 0)) return seen;
  const held = lateShareOf(before);
  const step = bounded(Math.log((1 - held) * Math.exp(stepBetween(punctual(before), punctual(probe))) + held));
  return lateShare > MOST_LATENESS && step > 0 && seen < 0 ? seen : step;
}

function stepBetween(before: Flow, probe: Flow): number {
  const left = Math.min(SHALLOWEST, probe.inFlight / before.inFlight);
  const elasticity = Math.log(probe.latencyMs / before.latencyMs) / Math.log(left);
  return Math.log(HEADROOM) + elasticity * Math.log(PROBE);
}

/** The flow as seen by a process that is never late. */
function punctual(flow: Flow): Flow {
  const share = 1 - lateShareOf(flow);
  return { inFlight: flow.inFlight * share, latencyMs: flow.latencyMs * share, latenessMs: 0 };
}

/** Share of the latency, and so by Little's law of the requests in flight. */
function lateShareOf({ latencyMs, latenessMs }: Flow): number {
  return within(latenessMs / latencyMs, 0, MOST_LATE_SHARE);
}

function bounded(step: number): number {
  return within(step, -MOST_STEP, MOST_STEP);
}

function within(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
