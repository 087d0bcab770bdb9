/**
 * One gauge of a load-shedding rule: how busy the process, or one upstream, is, and which requests may still come in.
 * In: arrivals and ends of requests, and utilisation that was measured elsewhere. Out: pass or shed.
 * Classes are nested: each may fill the server up to its own threshold, so that the last places are left to the classes that matter most.
 * Time is an argument.
 */
import { type Arrival, ClassValve } from "./class-valve.js";
import { LimitEstimator } from "./limit-estimator.js";

/** Valves move this often. */
const MOVE_EVERY_MS = 100;
/** A step of the clock, or a process that was paused, moves valves no further than this long. */
const LONGEST_MOVE_MS = 1_000;
/** A threshold above 1 is room above the limit: of a small limit at least so many places, times the part above 1. */
const LEAST_ROOM_ABOVE = 10;
/** How long a request takes, where none has been served yet. */
const UNKNOWN_LATENCY_MS = 1_000;
/** How much the newest latency counts. */
const LATENCY_WEIGHT = 0.05;

interface GaugeOptions {
  /** Places for requests in flight; `auto` estimates them; undefined where they do not count. */
  readonly limit: number | "auto" | undefined;
  /** The threshold of each class. */
  readonly thresholds: readonly number[];
  readonly isFair: boolean;
  /** The integral over time of how late this process is (`loop-lateness.ts`): an estimated limit must not take it for a queue. */
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

  /** `before`: the gauge that it stands in for, under other numbers: what is in flight is in flight. */
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

  /** Places; undefined where requests in flight do not count. */
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

  /** The share of a class's requests that pass by their rank. */
  shareOf(classIndex: number): number {
    return this.#valves[classIndex]!.share;
  }

  /** Places that a class has left; undefined where requests in flight do not count. */
  roomOf(classIndex: number): number | undefined {
    const { limit } = this;
    if (limit === undefined) return undefined;
    const { threshold } = this.#valves[classIndex]!;
    // Not of a limit that is halved for a probe: the classes that matter most would pay for it.
    const above = Math.max(0, threshold - 1) * Math.max(this.settledLimit!, LEAST_ROOM_ABOVE);
    return Math.min(1, threshold) * limit + above - this.#inFlight;
  }

  /** Whether it is time to measure: the utilisation that was measured then goes into `measure`. */
  isDue(nowMs: number): boolean {
    return !(nowMs - this.#movedAtMs < MOVE_EVERY_MS) || nowMs < this.#movedAtMs;
  }

  /** `measured`: the highest utilisation that was measured elsewhere, if there is any. */
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
    // Both are asked, for both count the demand.
    const hasRoom = room === undefined || valve.passesInFlight(arrival, room, this.limit!);
    return (this.#measured === undefined || valve.passesMeasured(arrival)) && hasRoom;
  }

  began(nowMs: number): void {
    this.#estimator?.changes(nowMs, this.#inFlight);
    this.#inFlight++;
  }

  /** `latencyMs`: undefined for a request that was not served: it teaches nothing. */
  ended(nowMs: number, latencyMs: number | undefined): void {
    this.#estimator?.changes(nowMs, this.#inFlight);
    this.#inFlight--;
    if (latencyMs === undefined) return;
    this.#latencyMs = (this.#latencyMs ?? latencyMs) * (1 - LATENCY_WEIGHT) + latencyMs * LATENCY_WEIGHT;
    this.#estimator?.ended(nowMs, latencyMs);
  }

  /** The mean latency of those that were served. */
  get usualLatencyMs(): number {
    return this.#latencyMs ?? UNKNOWN_LATENCY_MS;
  }
}
