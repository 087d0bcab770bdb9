/**
 * `limit: auto`: estimates how many requests a server can work on at once, from what it delivers.
 *
 * It holds the limit alternately a little below and a little above its estimate (two arms), and compares the throughput X of the two at the
 * numbers in flight n that they really led to: elasticity = ln(X2/X1) / ln(n2/n1). Below the knee of the server's throughput curve more
 * places bring as much more throughput (elasticity 1), above it they bring only latency (0). The estimate moves up while the
 * elasticity is above a target near 0, and down while it is below: the smallest limit at which places are not wasted.
 *
 * It needs no latency of an idle server to compare with, so a server that turns slower, or is never idle, does not mislead it.
 * While the limit does not hold anything back, nothing can be learned, and the estimate stays. Time is an argument.
 */

export const FIRST_LIMIT = 16;
const LEAST_LIMIT = 4;
const MOST_LIMIT = 100_000;
/** The upper arm is the estimate times this, the lower one the estimate divided by it; a small estimate has arms so many places away. */
const ARM = 1.2;
const LEAST_ARM = 0.75;
/**
 * The elasticity that is aimed at: a little above 0, so that the lower arm just begins to cost throughput. Higher by the second number over
 * the estimate, or over 8 if that is more: with few places, each one too many costs more latency.
 */
const TARGET = 0.045;
const TARGET_OF_FEW = 0.35;
const LEAST_PLACES_OF_TARGET = 8;
const GAIN = 0.15;
/** Below so many places, where one place is a large step, steps are shorter, and arms take turns sooner: over so many requests a place at most. */
const FEW = 12;
const MOST_ENDS_A_PLACE = 30;
/** How much of the earlier evidence counts beside the newest comparison. */
const MEMORY = 0.8;
/** Where the evidence is clear, steps are longer, up to this factor: an estimate that is far off gets there soon. */
const MOST_PACE = 4;
/**
 * Steps down are longer by up to this factor where the evidence is for them: the elasticity cannot fall below 0, so the distance below the target says nothing about how far
 * above the knee the estimate has strayed. Without it, noise that led to three times the places is paid for in latency for a minute.
 */
const FALL = 3;
/** Two comparisons in a row share an arm, and err together: what they find counts as that much less evidence. */
const SHARED_ARM_NOISE = 1.4;
/** At the start the arms are far apart, and the estimate grows or shrinks by a factor until it would turn back up (slow start). */
const START_ARM = 1.5;
const START_TARGET = 0.35;
const START_FACTOR = { up: 1.5, down: 1 / 1.4 } as const;
/**
 * A step at the start needs this much evidence, in standard deviations, summed over comparisons, or so many of them: one wrong step far away
 * from the knee, and the estimate has a long way back.
 */
const START_EVIDENCE = 2;
const MOST_START_COMPARISONS = 6;
/** An arm is measured over this many requests while the estimate travels, and over more, up to the second number, once it has settled. */
const LEAST_ENDS = 50;
const MOST_ENDS = 800;
/** The upper arm over this many times as many: places that are missing in the lower one cost throughput for as long as it is held. */
const UPPER_TIMES = 2;
/** And over this many times their latency, and so long. */
const LEAST_LATENCIES = 3;
const LEAST_ARM_MS = 50;
/** After this long the smaller number of requests will do. */
const USUAL_ARM_MS = 1_500;
/** An arm that sees fewer requests is given up after this long: the load has gone. */
const LONGEST_ARM_MS = 10_000;
/** Arms closer than this (as a logarithm) tell nothing: the load, not the limit, decided what was in flight. */
const LEAST_DISTANCE = 0.08;
/** So much of the limit must be in use for it to be what holds requests back. */
const LEAST_USE = 0.6;

interface Arm {
  readonly inFlight: number;
  readonly throughput: number;
  readonly ends: number;
}

export class LimitEstimator {
  #estimate = FIRST_LIMIT;
  #isUpper = false;
  /** Undefined once the start is over. */
  #start: "either" | "up" | "down" | undefined = "either";
  /** When the arm began; until `#settledAtMs` requests of the other arm still end. */
  #beganAtMs = Number.NaN;
  #settledAtMs = 0;
  #latencyMs = 0;
  #ends = 0;
  #neededEnds = LEAST_ENDS;
  /** Requests in flight, summed over time. */
  #inFlightMs = 0;
  #changedAtMs = 0;
  #before: Arm | undefined;
  /** How clearly the last comparisons point up or down, in standard deviations. */
  #evidence = 0;
  #startComparisons = 0;

  /** The limit now: that of the arm. */
  get limit(): number {
    const estimate = this.#estimate;
    const arm = this.#start === undefined ? ARM : START_ARM;
    return this.#isUpper
      ? Math.max(estimate * arm, estimate + LEAST_ARM)
      : Math.max(1, Math.min(estimate / arm, estimate - LEAST_ARM));
  }

  /** The middle of the two arms. */
  get estimate(): number {
    return this.#estimate;
  }

  /** The number in flight is about to change; it was this until now. */
  changes(nowMs: number, inFlight: number): void {
    const sinceMs = Math.max(this.#changedAtMs, this.#settledAtMs);
    if (nowMs > sinceMs) this.#inFlightMs += inFlight * (nowMs - sinceMs);
    this.#changedAtMs = nowMs;
  }

  /** A request has ended after so long. */
  ended(nowMs: number, latencyMs: number): void {
    if (Number.isNaN(this.#beganAtMs)) this.#begin(nowMs);
    this.#latencyMs = this.#latencyMs === 0 ? latencyMs : this.#latencyMs + (latencyMs - this.#latencyMs) / 20;
    if (nowMs < this.#settledAtMs) return;
    this.#ends++;
    const ranMs = nowMs - this.#settledAtMs;
    const neededEnds = (ranMs >= USUAL_ARM_MS ? LEAST_ENDS : this.#neededEnds) * (this.#isUpper ? UPPER_TIMES : 1);
    if (this.#ends >= neededEnds && ranMs >= LEAST_ARM_MS && ranMs >= LEAST_LATENCIES * this.#latencyMs) {
      this.#compare({ ends: this.#ends, throughput: this.#ends / ranMs, inFlight: this.#inFlightMs / ranMs });
      this.#begin(nowMs);
    } else if (nowMs - this.#beganAtMs > LONGEST_ARM_MS) {
      this.#before = undefined;
      this.#begin(nowMs);
    }
  }

  #begin(nowMs: number): void {
    this.#isUpper = !this.#isUpper;
    this.#beganAtMs = nowMs;
    this.#settledAtMs = nowMs + this.#latencyMs;
    this.#ends = 0;
    this.#inFlightMs = 0;
  }

  #compare(arm: Arm): void {
    const before = this.#before;
    this.#before = arm;
    if (before === undefined || arm.inFlight < LEAST_USE * this.limit) return;
    const distance = Math.log(arm.inFlight / before.inFlight);
    // The number in flight must have followed the limit.
    if (Math.abs(distance) < LEAST_DISTANCE || distance > 0 !== this.#isUpper) return;
    const elasticity = Math.log(arm.throughput / before.throughput) / distance;
    const noise = Math.sqrt(1 / arm.ends + 1 / before.ends) / Math.abs(distance);
    if (this.#start !== undefined) this.#begins((elasticity - START_TARGET) / noise);
    else this.#move(elasticity - TARGET - TARGET_OF_FEW / Math.max(LEAST_PLACES_OF_TARGET, this.#estimate), noise);
  }

  #move(direction: number, noise: number): void {
    const evidence = MEMORY * this.#evidence + Math.max(-4, Math.min(4, direction / (noise * SHARED_ARM_NOISE)));
    this.#evidence = evidence;
    const agrees = direction > 0 === evidence > 0;
    const pace = agrees ? Math.max(1, Math.min(MOST_PACE, Math.abs(evidence) - 1)) : 1;
    const factor = pace > 1 ? 1 / 1.5 : 1.5;
    const mostEnds = this.#estimate < FEW ? MOST_ENDS_A_PLACE * this.#estimate : MOST_ENDS;
    this.#neededEnds = Math.max(LEAST_ENDS, Math.min(mostEnds, this.#neededEnds * factor));
    const fall = direction < 0 ? 1 + (FALL - 1) * Math.max(0, Math.min(1, -evidence - 1)) : 1;
    const step = GAIN * Math.min(1, this.#estimate / FEW) * pace * Math.max(-0.5, Math.min(0.5, direction * fall));
    this.#scale(Math.exp(step));
  }

  /** `found`: how far above the start's target, in standard deviations. */
  #begins(found: number): void {
    this.#evidence += found;
    this.#startComparisons++;
    // In pairs: an arm in which the process paused (garbage collection, compilation) speaks for one way in the comparison with the arm before it,
    // and for the other in that with the arm behind it.
    if (this.#startComparisons % 2 === 1) return;
    if (Math.abs(this.#evidence) < START_EVIDENCE && this.#startComparisons < MOST_START_COMPARISONS) return;
    const way = this.#evidence > 0 ? "up" : "down";
    this.#evidence = 0;
    this.#startComparisons = 0;
    // From up to down the start goes on downwards: one wrong step up, and what follows would be a long way back in short steps.
    const turnsBack = this.#start === "down" && way === "up";
    this.#start = turnsBack ? undefined : way;
    if (turnsBack) this.#before = undefined;
    else this.#scale(START_FACTOR[way]);
  }

  #scale(factor: number): void {
    this.#estimate = Math.max(LEAST_LIMIT, Math.min(MOST_LIMIT, this.#estimate * factor));
  }
}
