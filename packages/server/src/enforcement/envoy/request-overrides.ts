/**
 * Limits that requests bring themselves (`limit` of a descriptor). Rules are compiled, never made up on the way, so each new pair of limit
 * and unit is added to the rules once; there are few of them in practice, and never more than a bound.
 */
import type { Rule } from "sluice";
import type { Unit } from "./descriptor-config.js";
import { overrideRules } from "./envoy-rules.js";

/** Per unit. Beyond it the oldest gives way, and is added again when it comes back. */
const MOST_LIMITS = 500;

/** The units of the request's enum, by number. */
const units: readonly (Unit | undefined)[] = [undefined, "second", "minute", "hour", "day", "month", "year"];

export function overrideUnit(unit: number): Unit | undefined {
  return units[unit];
}

export class RequestOverrides {
  readonly #seen = new Map<Unit, number[]>();
  /** The last addition, until it is in force; those before it are in force when it is. */
  #underWay: Promise<void> | undefined;
  readonly #setRules: (rules: readonly Rule[]) => Promise<void>;

  constructor(setRules: (rules: readonly Rule[]) => Promise<void>) {
    this.#setRules = setRules;
  }

  /** Resolves when the limit is in force. */
  async ensure(unit: Unit, limit: number): Promise<void> {
    const limits = this.#seen.get(unit) ?? [];
    if (!limits.includes(limit)) {
      this.#seen.set(unit, [...limits, limit].slice(-MOST_LIMITS));
      const added = this.#setRules(overrideRules(this.#seen));
      this.#underWay = added;
      added
        .catch(() => this.#forget(unit, limit))
        .finally(() => {
          if (this.#underWay === added) this.#underWay = undefined;
        });
    }
    // Also for a limit that is known: the request that brought it first may still be waiting for its rule.
    await this.#underWay;
  }

  /** Not in force, so not known: the next request with it tries again. */
  #forget(unit: Unit, limit: number): void {
    const limits = this.#seen.get(unit) ?? [];
    this.#seen.set(
      unit,
      limits.filter((known) => known !== limit),
    );
  }
}
