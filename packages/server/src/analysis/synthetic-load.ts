/**
 * A load that shows how an algorithm behaves at window edges: bursts of the full limit just before and just after an edge, plus a steady
 * trickle. Deterministic. Pure.
 */
import type { Arrival } from "./replay.js";

interface LoadOptions {
  readonly limit: number;
  readonly windowMs: number;
  /** Duration in windows. */
  readonly windows: number;
}

/** A boundary of every window length up to a day. */
const START_MS = Date.UTC(2026, 0, 1);
/** Distance of a burst from the edge, as a share of the window. */
const NEAR = 0.02;

/** Requests twice the limit in each window, for one client. */
export function* edgeBursts({ limit, windowMs, windows }: LoadOptions): Generator<Arrival> {
  const attributes = { client: "burst" };
  for (let window = 1; window <= windows; window++) {
    const edgeMs = START_MS + window * windowMs;
    for (const sign of [-1, 1]) {
      for (let i = 0; i < limit; i++) {
        const offMs = NEAR * windowMs * (i / limit);
        const atMs = sign < 0 ? edgeMs - NEAR * windowMs + offMs : edgeMs + offMs;
        yield { atMs, durationMs: 0, attributes };
      }
    }
  }
}
