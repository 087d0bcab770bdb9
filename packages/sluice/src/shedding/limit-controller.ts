/**
 * Moves a limit between two numbers so that utilisation approaches a target. One step per second, by one instance of the fleet.
 *
 *   e = utilisation / target
 *   saturated (utilisation >= 0.98)   limit x 0.7          how far load is above capacity is unknown: multiplicative decrease
 *   e > 1                             limit x e^-0.5       but no less than 0.7
 *   e < 1                             limit x e^-0.1       but no more than 1.1
 *
 * A gradient step with exponent g on measurements that are d steps old overshoots above g = d^d / (d+1)^(d+1) (critical damping): 0.105 for
 * d = 3. Upwards nothing may overshoot: between a target of 0.9 and saturation there is less room than one large step, and each saturated
 * report multiplies the limit by 0.7, so it would oscillate between its floor and its capacity forever. Downwards, half of the way is
 * stable. Hysteresis: a limit at rest moves when e differs from 1 by more than 8 %, or when it is saturated, and rests again within 3 %, so
 * that noise moves nothing.
 *
 * Without any utilisation the limit holds for half a minute, then drifts back to the rule's own `limit`, a tenth of the way per second: the
 * number that its owner chose, if nothing else is known. Pure: time is an argument.
 */
export interface LimitRange {
  readonly limit: number;
  readonly min: number;
  readonly max: number;
  /** The utilisation to aim at. */
  readonly target: number;
}

const SATURATED = 0.98;
const STEP = { down: 0.5, up: 0.1 } as const;
const FASTEST = { down: 0.7, up: 1.1 } as const;
const MOVES_BEYOND = 0.08;
const RESTS_WITHIN = 0.03;
const HOLD_MS = 30_000;
const DRIFT = 0.1;

export class LimitController {
  readonly #range: LimitRange;
  #isMoving = false;
  /** When utilisation was last known. */
  #knownAtMs: number;

  constructor(range: LimitRange, nowMs: number) {
    this.#range = range;
    this.#knownAtMs = nowMs;
  }

  /** The limit after this step. `current` need not be whole: the enforced limit is rounded, the moving one is not. */
  next(current: number, utilisation: number | undefined, nowMs: number): number {
    if (utilisation === undefined) return this.#withoutUtilisation(current, nowMs);
    this.#knownAtMs = nowMs;
    const { target } = this.#range;
    const ratio = utilisation / target;
    const distance = Math.abs(ratio - 1);
    const isSaturated = utilisation >= SATURATED && ratio > 1;
    // Hysteresis must not hold a saturated limit: with a target above 0.93, utilisation is never 8 % away.
    this.#isMoving = isSaturated || distance > (this.#isMoving ? RESTS_WITHIN : MOVES_BEYOND);
    if (!this.#isMoving) return current;
    if (isSaturated) return this.#within(current * FASTEST.down);
    if (ratio > 1) return this.#within(current * Math.max(FASTEST.down, ratio ** -STEP.down));
    // If nothing at all is in use, move at full speed.
    return this.#within(current * (ratio === 0 ? FASTEST.up : Math.min(FASTEST.up, ratio ** -STEP.up)));
  }

  #withoutUtilisation(current: number, nowMs: number): number {
    const { limit } = this.#range;
    if (nowMs - this.#knownAtMs < HOLD_MS) return current;
    return Math.abs(limit - current) < 0.5 ? limit : current + DRIFT * (limit - current);
  }

  #within(limit: number): number {
    return Math.min(this.#range.max, Math.max(this.#range.min, limit));
  }
}
