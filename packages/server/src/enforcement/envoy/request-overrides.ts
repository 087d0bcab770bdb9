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
  readonly #setRules: (rules: readonly Rule[]) => Promise<void>;

  constructor(setRules: (rules: readonly Rule[]) => Promise<void>) {
    this.#setRules = setRules;
  }

  /** Resolves when the limit is in force. */
  async ensure(unit: Unit, limit: number): Promise<void> {
    const limits = this.#seen.get(unit) ?? [];
    if (limits.includes(limit)) return;
    this.#seen.set(unit, [...limits, limit].slice(-MOST_LIMITS));
    await this.#setRules(overrideRules(this.#seen));
  }
}
