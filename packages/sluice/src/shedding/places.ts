/**
 * The places that requests in flight hold, each under an unguessable id until the request ends. A place whose end is never reported is freed
 * after its term, unless it is renewed: a caller that forgets must not shut the gate for ever. Time is an argument.
 *
 * A client that leaves before its answer frees its place no sooner than a request usually ends: the server may go on working for it, and
 * requests that are sent and aborted at once would otherwise fill the server unseen (HTTP/2's rapid reset). A request that waits for its turn
 * (`maxWait`) does no work meanwhile, and is not in flight.
 */
import { EndingOrder } from "./ending-order.js";
import type { GaugeSlot } from "./gauges.js";

/** As long as a lease of a concurrency rule lives by default. */
export const PLACE_TTL_MS = 30_000;

/** `refused`: a counter refused it after all; `left`: its client did not wait for the answer. */
export type RequestEnd = "served" | "refused" | "left";

interface Place {
  readonly slots: readonly GaugeSlot[];
  beganAtMs: number;
  endsAtMs: number;
  /** Waits for its turn. */
  isPaused: boolean;
}

export class Places {
  /** In the order in which they end: all have the same term. */
  readonly #held = new Map<string, Place>();
  /** Those whose clients left. */
  readonly #left = new EndingOrder<Place>();

  take(id: string, slots: readonly GaugeSlot[], nowMs: number): void {
    for (const { gauge } of slots) gauge.began(nowMs);
    this.#held.set(id, { slots, beganAtMs: nowMs, endsAtMs: nowMs + PLACE_TTL_MS, isPaused: false });
  }

  /** False if it was not held any more. */
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

  /** The request begins to wait for its turn. */
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

  /** Ms until it now ends; 0 if it was lost. */
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

  /** Frees the places of clients that left, as far as their time has come. Cheap where there are none. */
  freeLeft(nowMs: number): void {
    for (let { next } = this.#left; next !== undefined && next.endsAtMs <= nowMs; next = this.#left.next) {
      this.#left.removeNext();
      // How long it would have taken was not seen: it teaches nothing.
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
