/**
 * One class of requests at one gauge: which of its requests pass while utilisation is near the class's threshold.
 *
 * A request has a rank from 0 to 1, the stable hash of its identity: the same users pass, and a retry gets the answer of the first attempt.
 * The valve holds the share of ranks that pass. It opens and closes slowly, so that one burst does not change who passes. For requests in
 * flight, the room that is left also counts immediately:
 *   no room             shed, whatever the rank
 *   plenty of room      passes, whatever the rank
 *   between (the band)  passes if rank * (1 - room / band) is below its share: smooth, and never idle for lack of a good rank
 * A measured utilisation (event loop, reports) lags and knows no room: a request then passes by rank alone, slightly blurred, so that a
 * single key that is all the traffic is thinned out instead of switched on and off. With fair shares, a key's share is what max-min
 * fairness leaves it, instead of the same share for all.
 */
import { FairShares } from "./fair-shares.js";

/** The band below the threshold in which ranks count, as a fraction of the limit, and at least this many places. */
const BAND = 0.15;
/** Wider with fair shares: below the band a greedy key takes as much as it asks for. */
const FAIR_BAND = 0.4;
const LEAST_BAND = 1;
/** The mean position within the band that the share is steered to; 0 is the threshold. */
const BAND_AIM = 0.35;
const BAND_GAIN_PER_S = 2;
/** For measured utilisation: at this distance from the threshold the valve closes or opens at full speed. */
const MEASURED_BAND = 0.1;
/**
 * Where in that band below the threshold the valve stands still. At the threshold it already closes, because a measurement of 1 cannot
 * rise.
 */
const MEASURED_AIM = 0.5;
const CLOSING_PER_S = 1;
/** Slower than closing. */
const OPENING_PER_S = 0.5;
const LEAST_SHARE = 0.005;
/** How much chance blurs a rank if only a measured utilisation counts. */
const BLUR = 0.2;
/** Half-life of demand. */
const HALF_LIFE_MS = 3_000;

export interface Arrival {
  /** Stable, from 0 to 1. Read only near a threshold. */
  readonly rank: number;
  /** The hash of the key for fair shares; undefined without `fairBy`. */
  readonly fairHash: number | undefined;
  /** From 0 to 1, new for every request. */
  readonly chance: number;
  /** True if the request only asks: a look does not count as demand. */
  readonly looks: boolean;
}

export class ClassValve {
  /** The utilisation at which the class is shed. */
  readonly threshold: number;
  readonly #fair: FairShares | undefined;
  /** Created by the first measured request: most gauges only count requests in flight. */
  #measuredFair: FairShares | undefined;
  #share = 1;
  #measuredShare = 1;
  #arrivals = 0;
  #bandSum = 0;

  constructor(threshold: number, isFair: boolean) {
    this.threshold = threshold;
    this.#fair = isFair ? new FairShares() : undefined;
  }

  /** The share of requests that pass by rank, from which the reported wait of a shed request is computed. */
  get share(): number {
    return Math.min(this.#share, this.#measuredShare);
  }

  /** `room`: places left below the class's threshold, out of `limit`. */
  passesInFlight(arrival: Arrival, room: number, limit: number): boolean {
    const { fairHash } = arrival;
    const within = room / Math.max(LEAST_BAND, (this.#fair === undefined ? BAND : FAIR_BAND) * limit);
    if (!arrival.looks) {
      this.#arrivals++;
      this.#bandSum += within < 0 ? 0 : within > 1 ? 1 : within;
      if (fairHash !== undefined) this.#fair!.note(fairHash);
    }
    const passes = room > 0 && (within >= 1 || arrival.rank * (1 - within) < this.#shareOf(fairHash));
    if (passes && fairHash !== undefined && !arrival.looks) this.#fair!.notePassed(fairHash);
    return passes;
  }

  passesMeasured(arrival: Arrival): boolean {
    const { fairHash, chance } = arrival;
    if (fairHash !== undefined) this.#measuredFair ??= new FairShares();
    const isCounted = fairHash !== undefined && !arrival.looks;
    if (isCounted) this.#measuredFair!.note(fairHash);
    const share = fairHash === undefined ? this.#measuredShare : this.#measuredFair!.shareOf(fairHash);
    const passes = this.#measuredShare >= 1 || arrival.rank * (1 - BLUR) + chance * BLUR < share;
    if (passes && isCounted) this.#measuredFair!.notePassed(fairHash);
    return passes;
  }

  #shareOf(fairHash: number | undefined): number {
    return fairHash === undefined ? this.#share : this.#fair!.shareOf(fairHash);
  }

  /** Moves the shares after `elapsedMs`. `measured`: the highest measured utilisation, if any. */
  move(elapsedMs: number, measured: number | undefined): void {
    const seconds = elapsedMs / 1000;
    const aging = 0.5 ** (elapsedMs / HALF_LIFE_MS);
    const within = this.#arrivals === 0 ? 1 : this.#bandSum / this.#arrivals;
    this.#share = bounded(this.#share * Math.exp(BAND_GAIN_PER_S * (within - BAND_AIM) * seconds));
    this.#arrivals = 0;
    this.#bandSum = 0;
    this.#fair?.divide(this.#share, aging);
    const distance =
      measured === undefined
        ? 1
        : Math.max(-1, Math.min(1, (this.threshold - measured) / MEASURED_BAND - MEASURED_AIM));
    const pace = distance < 0 ? CLOSING_PER_S : OPENING_PER_S;
    this.#measuredShare = bounded(this.#measuredShare * Math.exp(pace * distance * seconds));
    this.#measuredFair?.divide(this.#measuredShare, aging);
  }
}

function bounded(share: number): number {
  return Math.max(LEAST_SHARE, Math.min(1, share));
}
