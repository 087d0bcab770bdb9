/**
 * One gauge of a load-shedding rule: how busy the process, or one upstream, is, and which requests may still enter. In: arrivals and ends
 * of requests, and utilisation measured elsewhere. Out: pass or shed. Classes are nested: each may fill the server up to its own threshold,
 * so that the last places are left to the most important classes. Time is an argument.
 */
import { type Arrival, ClassValve } from "./class-valve.js";
import { LimitEstimator } from "./limit-estimator.js";

/** Valves move this often. */
const MOVE_EVERY_MS = 100;
/** After a clock step or a pause of the process, valves move as if at most this much time had passed. */
const LONGEST_MOVE_MS = 1_000;
/** A threshold above 1 is room above the limit: for a small limit, at least this many places times the part above 1. */
const LEAST_ROOM_ABOVE = 10;
/** The assumed latency before any request has been served. */
const UNKNOWN_LATENCY_MS = 1_000;
/** Weight of the newest latency. */
const LATENCY_WEIGHT = 0.05;

interface GaugeOptions {
  /** Places for requests in flight; `auto` estimates them; undefined if they do not count. */
  readonly limit: number | "auto" | undefined;
  /** The threshold of each class. */
  readonly thresholds: readonly number[];
  readonly isFair: boolean;
  /** The integral over time of how late this process is (`loop-lateness.ts`): an estimated limit must not mistake lateness for a queue. */
  readonly lateness?: (() => number) | undefined;
}

export class Gauge {
  readonly #valves: readonly ClassValve[];
  readonly #limit: number | undefined;
  readonly #estimator: LimitEstimator | undefined;
  #inFlight = 0;
  #movedAtMs = Number.NaN;
  #measured: number | undefined;
  #latencyMs: number | undefined;

  /** `before`: the gauge that this one replaces, with other numbers. Its requests in flight carry over. */
  constructor({ limit, thresholds, isFair, lateness }: GaugeOptions, before?: Gauge) {
    this.#inFlight = before?.inFlight ?? 0;
    this.#latencyMs = before?.usualLatencyMs;
    this.#valves = thresholds.map((threshold) => new ClassValve(threshold, isFair));
    this.#limit = limit === "auto" ? undefined : limit;
    this.#estimator = limit === "auto" ? new LimitEstimator(lateness) : undefined;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Places; undefined if requests in flight do not count. */
  get limit(): number | undefined {
    return this.#estimator?.limit ?? this.#limit;
  }

  /** The limit between probes. */
  get settledLimit(): number | undefined {
    return this.#estimator?.estimate ?? this.#limit;
  }

  get measured(): number | undefined {
    return this.#measured;
  }

  /** The highest of all signals. */
  get utilisation(): number {
    const limit = this.settledLimit;
    return Math.max(limit === undefined ? 0 : this.#inFlight / limit, this.#measured ?? 0);
  }

  /** The share of a class's requests that pass by rank. */
  shareOf(classIndex: number): number {
    return this.#valves[classIndex]!.share;
  }

  /** Places that a class has left; undefined if requests in flight do not count. */
  roomOf(classIndex: number): number | undefined {
    const { limit } = this;
    if (limit === undefined) return undefined;
    const { threshold } = this.#valves[classIndex]!;
    // Not based on a limit that is halved for a probe: the most important classes would pay for it.
    const above = Math.max(0, threshold - 1) * Math.max(this.settledLimit!, LEAST_ROOM_ABOVE);
    return Math.min(1, threshold) * limit + above - this.#inFlight;
  }

  /** Whether it is time to call `measure` with the utilisation measured now. */
  isDue(nowMs: number): boolean {
    return !(nowMs - this.#movedAtMs < MOVE_EVERY_MS) || nowMs < this.#movedAtMs;
  }

  /** `measured`: the highest utilisation measured elsewhere, if any. */
  measure(nowMs: number, measured: number | undefined): void {
    const elapsedMs = Math.max(0, Math.min(LONGEST_MOVE_MS, nowMs - this.#movedAtMs)) || 0;
    this.#movedAtMs = nowMs;
    this.#measured = measured;
    for (const valve of this.#valves) valve.move(elapsedMs, measured);
  }

  /** Whether a request of the class passes. Takes no place. */
  passes(classIndex: number, arrival: Arrival): boolean {
    const valve = this.#valves[classIndex]!;
    const room = this.roomOf(classIndex);
    // Both are called, because both count the demand.
    const hasRoom = room === undefined || valve.passesInFlight(arrival, room, this.limit!);
    return (this.#measured === undefined || valve.passesMeasured(arrival)) && hasRoom;
  }

  began(nowMs: number): void {
    this.#estimator?.changes(nowMs, this.#inFlight);
    this.#inFlight++;
  }

  /** `latencyMs`: undefined for a request that was not served, from which nothing is learned. */
  ended(nowMs: number, latencyMs: number | undefined): void {
    this.#estimator?.changes(nowMs, this.#inFlight);
    this.#inFlight--;
    if (latencyMs === undefined) return;
    this.#latencyMs = (this.#latencyMs ?? latencyMs) * (1 - LATENCY_WEIGHT) + latencyMs * LATENCY_WEIGHT;
    this.#estimator?.ended(nowMs, latencyMs);
  }

  /** The mean latency of served requests. */
  get usualLatencyMs(): number {
    return this.#latencyMs ?? UNKNOWN_LATENCY_MS;
  }
}
