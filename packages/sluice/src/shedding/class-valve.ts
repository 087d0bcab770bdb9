/**
 * One class of requests at one gauge: which of its requests pass while the utilisation is near the class's threshold.
 *
 * A request has a rank from 0 to 1, the stable hash of its identity: the same users pass, and a retry gets the answer of the first try.
 * The valve holds the share of ranks that pass. It opens and closes slowly, so that one burst does not change who passes. For requests in
 * flight the room that is left counts at once, beside it:
 *   no room             shed, whatever the rank
 *   room in plenty      passes, whatever the rank
 *   between (the band)  passes if rank * (1 - room / band) is below its share: smooth, and never idle for want of a good rank
 * A measured utilisation (event loop, reports) is late and knows no room: there a request passes by rank alone, blurred a little, so
 * that a single key that is all the traffic is thinned and not switched on and off.
 * With fair shares, a key's share is what max-min fairness leaves it instead of the same for all.
 */
import { FairShares } from "./fair-shares.js";

/** The band below the threshold in which ranks count, as a share of the limit, and at least so many places. */
const BAND = 0.15;
/** Wider with fair shares: below the band a greedy key takes as much as it asks for. */
const FAIR_BAND = 0.4;
const LEAST_BAND = 1;
/** The mean place within the band that the share is steered to; 0 is the threshold. */
const BAND_AIM = 0.35;
const BAND_GAIN_PER_S = 2;
/** For measured utilisation: a distance of this much from the threshold closes or opens the valve at the full pace. */
const MEASURED_BAND = 0.1;
/** Where in that band below the threshold the valve stands still: at the threshold it closes, for a measurement of 1 cannot rise. */
const MEASURED_AIM = 0.5;
const CLOSING_PER_S = 1;
/** Opens more slowly than it closes. */
const OPENING_PER_S = 0.5;
const LEAST_SHARE = 0.005;
/** How far chance blurs a rank where only a measured utilisation counts. */
const BLUR = 0.2;
/** Demand of this long ago counts half. */
const HALF_LIFE_MS = 3_000;

export interface Arrival {
  /** Stable, from 0 to 1. Asked for only near a threshold. */
  readonly rank: number;
  /** The hash of the key that fair shares go by; undefined without `fairBy`. */
  readonly fairHash: number | undefined;
  /** From 0 to 1, new for every request. */
  readonly chance: number;
  /** Whether it only asks: a look is not counted as demand. */
  readonly looks: boolean;
}

export class ClassValve {
  /** The utilisation at which the class is shed. */
  readonly threshold: number;
  readonly #fair: FairShares | undefined;
  /** Made by the first request that is measured: most gauges only count those in flight. */
  #measuredFair: FairShares | undefined;
  #share = 1;
  #measuredShare = 1;
  #arrivals = 0;
  #bandSum = 0;

  constructor(threshold: number, isFair: boolean) {
    this.threshold = threshold;
    this.#fair = isFair ? new FairShares() : undefined;
  }

  /** The share of requests that pass by rank, for the wait that a shed one is told. */
  get share(): number {
    return Math.min(this.#share, this.#measuredShare);
  }

  /** `room`: places left below the class's threshold, of a limit. */
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

  /** Moves the shares after `elapsedMs`. `measured`: the highest measured utilisation, if there is one. */
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
