/**
 * `sluice/testing`: a clock that stands still until it is moved, for testing limits without waiting.
 *
 *   const clock = virtualClock();
 *   const limiter = createLimiter({ clock, rules });
 *   clock.advance("1m");
 */
import { SluiceError } from "./errors.js";
import { parseDuration } from "./rules/duration.js";

export interface VirtualClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Moves forward, by ms or a duration such as "1m". */
  advance(by: number | string): void;
  /** Jumps to an instant, also backwards. */
  set(toMs: number): void;
}

/** Starts at the given instant; the default, 2026-01-01T00:00:00Z, is the start of every window up to a day. */
export function virtualClock(startMs: number = Date.UTC(2026, 0, 1)): VirtualClock {
  let nowMs = startMs;
  return {
    now: () => nowMs,
    advance(by) {
      const ms = typeof by === "number" ? by : parseDuration(by);
      if (ms === undefined || !Number.isFinite(ms) || ms < 0) {
        throw new SluiceError(
          "invalid-request",
          `advance: expected ms or a duration such as "1m", got ${JSON.stringify(by)}`,
        );
      }
      nowMs += ms;
    },
    set(toMs) {
      nowMs = toMs;
    },
  };
}
