/**
 * The places that requests in flight hold, each under an unguessable id until the request ends. A place whose end is never reported is
 * freed after its term, unless it is renewed: a forgetful caller must not shut the gate forever. Time is an argument.
 *
 * If a client disconnects before its answer, its place is freed no sooner than a request usually ends: the server may still be working for
 * it, and requests that are sent and aborted at once would otherwise fill the server unseen (HTTP/2 rapid reset). A request that waits for
 * its turn (`maxWait`) does no work meanwhile, and is not in flight.
 */
import { EndingOrder } from "./ending-order.js";
import type { GaugeSlot } from "./gauges.js";

/** The default term of a lease under a concurrency rule. */
export const PLACE_TTL_MS = 30_000;

/** `refused`: a counter refused it afterwards; `left`: its client disconnected before the answer. */
export type RequestEnd = "served" | "refused" | "left";

interface Place {
  readonly slots: readonly GaugeSlot[];
  beganAtMs: number;
  endsAtMs: number;
  /** True while it waits for its turn. */
  isPaused: boolean;
}

export class Places {
  /** In the order of expiry: all have the same term. */
  readonly #held = new Map<string, Place>();
  /** Places whose clients have disconnected. */
  readonly #left = new EndingOrder<Place>();

  take(id: string, slots: readonly GaugeSlot[], nowMs: number): void {
    for (const { gauge } of slots) gauge.began(nowMs);
    this.#held.set(id, { slots, beganAtMs: nowMs, endsAtMs: nowMs + PLACE_TTL_MS, isPaused: false });
  }

  /** False if it was no longer held. */
  release(id: string, nowMs: number, end: RequestEnd = "served"): boolean {
    const place = this.#held.get(id);
    if (place === undefined) return false;
    this.#held.delete(id);
    if (place.isPaused) return true;
    const usualEndMs = end === "left" ? place.beganAtMs + usualLatencyOf(place) : 0;
    if (usualEndMs > nowMs) {
      place.endsAtMs = usualEndMs;
      this.#left.add(place);
    } else free(place, nowMs, end === "refused" ? undefined : nowMs - place.beganAtMs);
    return true;
  }

  /** The request starts waiting for its turn. */
  pause(id: string, nowMs: number): void {
    const place = this.#held.get(id);
    if (place === undefined || place.isPaused) return;
    free(place, nowMs, undefined);
    place.isPaused = true;
  }

  /** Its turn has come. */
  resume(id: string, nowMs: number): void {
    const place = this.#held.get(id);
    if (place === undefined || !place.isPaused) return;
    place.isPaused = false;
    place.beganAtMs = nowMs;
    for (const { gauge } of place.slots) gauge.began(nowMs);
  }

  /** Milliseconds until it ends now; 0 if it was lost. */
  renew(id: string, nowMs: number): number {
    const place = this.#held.get(id);
    if (place === undefined) return 0;
    this.#held.delete(id);
    place.endsAtMs = nowMs + PLACE_TTL_MS;
    this.#held.set(id, place);
    return PLACE_TTL_MS;
  }

  freeExpired(nowMs: number): void {
    for (const [id, { endsAtMs }] of this.#held) {
      if (endsAtMs > nowMs) return;
      this.release(id, nowMs, "refused");
    }
  }

  /** Frees the places of disconnected clients whose time has come. Cheap if there are none. */
  freeLeft(nowMs: number): void {
    for (let { next } = this.#left; next !== undefined && next.endsAtMs <= nowMs; next = this.#left.next) {
      this.#left.removeNext();
      // Its real latency is unknown, so nothing is learned from it.
      free(next, nowMs, undefined);
    }
  }
}

function free({ slots }: Place, nowMs: number, latencyMs: number | undefined): void {
  for (const { gauge } of slots) gauge.ended(nowMs, latencyMs);
}

function usualLatencyOf({ slots }: Place): number {
  let longestMs = 0;
  for (const { gauge } of slots) longestMs = Math.max(longestMs, gauge.usualLatencyMs);
  return longestMs;
}
