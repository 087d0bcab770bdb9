/**
 * What came of the requests of one run of `overload-model.mjs`, in virtual or in real time: the figures that the bars are about.
 *
 * Oscillation is the largest deviation from their mean of steps of the settled time, each of as many requests as chance leaves alone. Places that
 * are never idle end sqrt(N) requests more or less than N (service times with a standard deviation as large as their mean): of 500 in a step
 * that is 4.5 %, and the largest of eight steps misses 10 % in one run of ten, whatever the limit does. Of 1000 in a step, five steps miss it
 * in one run of 200. So a step lasts 5 s and 1000 requests at least. Steps overlap by three quarters: a swing whose period is two steps
 * long would be invisible to steps that begin at its crest.
 */

/**
 * @typedef {import("./overload-model.mjs").Caller} Caller
 * @typedef {import("./overload-model.mjs").Scenario} Scenario
 * @typedef {{ goodput: number, critical: number, p99: number, unloadedP99: number, oscillation: number, noisyShare: number, limit: number }} Outcome
 */

/** Lognormal, with a standard deviation as large as the mean. */
export const SIGMA = Math.sqrt(Math.log(2));
/** Requests that take longer have failed, as multiples of the mean service time. */
const DEADLINE_MEANS = 12.5;
const LEAST_STEP = { ms: 5_000, requests: 1_000 };
const LEAST_STEPS = 5;
const PARTS_PER_STEP = 4;

/** Requests a millisecond that a server could do which wastes nothing. @param {Scenario} scenario @param {number} second @param {{ meanMs: number, drawnMeanMs?: number }} mean */
function possiblePerMs({ places, slowness = () => 1, load }, second, { meanMs, drawnMeanMs = meanMs }) {
  return places * Math.min(1 / slowness(second) / drawnMeanMs, load(second) / meanMs);
}

/** Of oscillation. Once settled, no scenario changes. @param {Scenario} scenario @param {number} meanMs of serving one request */
export function stepMs(scenario, meanMs) {
  const { warmSeconds = 0, settledSeconds = warmSeconds } = scenario;
  return Math.max(LEAST_STEP.ms, LEAST_STEP.requests / possiblePerMs(scenario, settledSeconds, { meanMs }));
}

/** How long a scenario is played: longer than `seconds`, to which all other figures go, where fewer steps than five would be left. @param {Scenario} scenario @param {number} meanMs */
export function playedSeconds(scenario, meanMs) {
  const { seconds, warmSeconds = 0, settledSeconds = warmSeconds } = scenario;
  return Math.max(seconds, settledSeconds + (LEAST_STEPS * stepMs(scenario, meanMs)) / 1000);
}

export class Tally {
  #asked = { critical: 0 };
  #good = { critical: 0, all: 0, normal: 0, noisy: 0 };
  /** Over the slowness of their moment. @type {number[]} */
  #latencies = [];
  /** By part of a step, once settled. @type {number[]} */
  #goodPerPart;
  #settledMs;
  #partMs;
  #scenario;
  #meanMs;

  /** @param {Scenario} scenario @param {number} meanMs of serving one request */
  constructor(scenario, meanMs) {
    this.#scenario = { slowness: () => 1, warmSeconds: 0, ...scenario };
    this.#meanMs = meanMs;
    this.#settledMs = (scenario.settledSeconds ?? this.#scenario.warmSeconds) * 1000;
    this.#partMs = stepMs(scenario, meanMs) / PARTS_PER_STEP;
    const settledMs = playedSeconds(scenario, meanMs) * 1000 - this.#settledMs;
    this.#goodPerPart = Array.from({ length: Math.floor(settledMs / this.#partMs + 1e-9) }, () => 0);
  }

  /** How long a caller waits for a request that it sends now. @param {number} nowMs */
  deadlineMs(nowMs) {
    return DEADLINE_MEANS * this.#meanMs * this.#scenario.slowness(nowMs / 1000);
  }

  /** A first try. @param {Caller} caller @param {number} nowMs */
  asked(caller, nowMs) {
    if (this.#isJudged(nowMs) && caller.class === "critical") this.#asked.critical++;
  }

  /** @param {Caller} caller @param {number} arrivedMs @param {number} nowMs */
  served(caller, arrivedMs, nowMs) {
    const isInTime = nowMs - arrivedMs <= this.deadlineMs(arrivedMs);
    const part = Math.floor((arrivedMs - this.#settledMs) / this.#partMs);
    if (isInTime && part >= 0 && part < this.#goodPerPart.length) {
      this.#goodPerPart[part] = /** @type {number} */ (this.#goodPerPart[part]) + 1;
    }
    // By when it was served: what still waits at the end would be more than the places can do.
    if (isInTime && this.#isJudged(nowMs)) this.#good.all++;
    if (!this.#isJudged(arrivedMs)) return;
    this.#latencies.push((nowMs - arrivedMs) / this.#scenario.slowness(arrivedMs / 1000));
    if (!isInTime) return;
    const good = this.#good;
    if (caller.class === "critical") good.critical++;
    if (caller.class === "normal") good.normal++;
    if (caller.class === "normal" && caller.tenant === "t0") good.noisy++;
  }

  /** @param {number | undefined} limit @param {number} [drawnMeanMs] what serving one request really took @returns {Outcome} */
  outcome(limit, drawnMeanMs = this.#meanMs) {
    const good = this.#good;
    return {
      goodput: good.all / this.#possible(drawnMeanMs),
      critical: this.#asked.critical === 0 ? 1 : good.critical / this.#asked.critical,
      p99: quantile(this.#latencies, 0.99),
      unloadedP99: Math.exp(Math.log(this.#meanMs) - (SIGMA * SIGMA) / 2 + 2.326 * SIGMA),
      oscillation: this.#oscillation(),
      noisyShare: good.noisy / Math.max(1, good.normal),
      limit: limit ?? Number.NaN,
    };
  }

  /** Neither before it is warm nor in the time that is played for oscillation alone. @param {number} ms */
  #isJudged(ms) {
    const { warmSeconds, seconds } = this.#scenario;
    return ms >= warmSeconds * 1000 && ms < seconds * 1000;
  }

  /** @param {number} drawnMeanMs */
  #possible(drawnMeanMs) {
    const { warmSeconds, seconds } = this.#scenario;
    let possible = 0;
    for (let s = warmSeconds; s < seconds; s += 0.01) {
      possible += 10 * possiblePerMs(this.#scenario, s, { meanMs: this.#meanMs, drawnMeanMs });
    }
    return possible;
  }

  #oscillation() {
    const parts = this.#goodPerPart;
    const mean = (PARTS_PER_STEP * parts.reduce((sum, count) => sum + count, 0)) / parts.length;
    if (mean === 0) return 0;
    let largest = 0;
    for (let end = PARTS_PER_STEP; end <= parts.length; end++) {
      const step = parts.slice(end - PARTS_PER_STEP, end).reduce((sum, count) => sum + count, 0);
      largest = Math.max(largest, Math.abs(step - mean) / mean);
    }
    return largest;
  }
}

/** @param {number[]} values @param {number} share */
function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
}
