/**
 * The places that requests in flight hold, each under an unguessable id until the request ends. A place whose end is never reported is freed
 * after its term, unless it is renewed: a caller that forgets must not shut the gate for ever. Time is an argument.
 */
import type { GaugeSlot } from "./gauges.js";

/** As long as a lease of a concurrency rule lives by default. */
export const PLACE_TTL_MS = 30_000;

interface Place {
  readonly slots: readonly GaugeSlot[];
  readonly beganAtMs: number;
  endsAtMs: number;
}

export class Places {
  /** In the order in which they end: all have the same term. */
  readonly #held = new Map<string, Place>();

  take(id: string, slots: readonly GaugeSlot[], nowMs: number): void {
    for (const { gauge } of slots) gauge.began(nowMs);
    this.#held.set(id, { slots, beganAtMs: nowMs, endsAtMs: nowMs + PLACE_TTL_MS });
  }

  /** False if it was not held any more. `wasServed`: whether its latency says anything about the server. */
  release(id: string, nowMs: number, wasServed = true): boolean {
    const place = this.#held.get(id);
    if (place === undefined) return false;
    this.#held.delete(id);
    for (const { gauge } of place.slots) gauge.ended(nowMs, wasServed ? nowMs - place.beganAtMs : undefined);
    return true;
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
      this.release(id, nowMs, false);
    }
  }
}
