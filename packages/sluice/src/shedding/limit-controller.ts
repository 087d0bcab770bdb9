/**
 * Moves a limit between two numbers so that utilisation comes to a target. One step a second, by one instance of the fleet.
 *
 *   e = utilisation / target
 *   saturated (utilisation >= 0.98)   limit x 0.7          how far above capacity the load is cannot be seen: multiplicative decrease
 *   e > 1                             limit x e^-0.5       but no less than 0.7
 *   e < 1                             limit x e^-0.25      but no more than 1.1: twice as careful upwards
 *
 * A gradient step of exponent g settles while its measurements are less than 1/(2g) to 1/g steps old: half of the way down, a quarter
 * up leave room for reports that are two seconds late. Hysteresis: a limit at rest moves when e leaves 1 by more than 8 %, and rests
 * again within 3 %, so that noise moves nothing.
 *
 * Without any utilisation the limit holds for half a minute, then goes back to the rule's own `limit`, a tenth of the way a second: the
 * number that its owner chose, where nothing else is known. Pure: time is an argument.
 */
export interface LimitRange {
  readonly limit: number;
  readonly min: number;
  readonly max: number;
  /** The utilisation aimed at. */
  readonly target: number;
}

const SATURATED = 0.98;
const STEP = { down: 0.5, up: 0.25 } as const;
const FASTEST = { down: 0.7, up: 1.1 } as const;
const MOVES_BEYOND = 0.08;
const RESTS_WITHIN = 0.03;
const HOLD_MS = 30_000;
const DRIFT = 0.1;

export class LimitController {
  readonly #range: LimitRange;
  #isMoving = false;
  /** When utilisation was known last. */
  #knownAtMs: number;

  constructor(range: LimitRange, nowMs: number) {
    this.#range = range;
    this.#knownAtMs = nowMs;
  }

  /** The limit after this step. `current` need not be whole: what is enforced is rounded, what is moved is not. */
  next(current: number, utilisation: number | undefined, nowMs: number): number {
    if (utilisation === undefined) return this.#withoutUtilisation(current, nowMs);
    this.#knownAtMs = nowMs;
    const { target } = this.#range;
    const ratio = utilisation / target;
    const distance = Math.abs(ratio - 1);
    this.#isMoving = distance > (this.#isMoving ? RESTS_WITHIN : MOVES_BEYOND);
    if (!this.#isMoving) return current;
    if (utilisation >= SATURATED && ratio > 1) return this.#within(current * FASTEST.down);
    if (ratio > 1) return this.#within(current * Math.max(FASTEST.down, ratio ** -STEP.down));
    // Nothing at all is in use: as fast as it goes.
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
