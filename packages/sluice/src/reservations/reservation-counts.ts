/**
 * Counts of one limiter's reservations since its start: how many, and how many units, by rule.
 */
import type { Settlement } from "../decision.js";

export interface ReservationStats {
  /** Made by this instance. */
  readonly opened: number;
  /** Settled or cancelled through this instance, whichever instance made them. */
  readonly settled: number;
  /** Made by this instance, and never settled by any. */
  readonly expired: number;
  /** Made by this instance, and not seen settled yet. */
  readonly open: number;
  /** Settlements waiting for the store, and those given up. */
  readonly pending: number;
  readonly dropped: number;
  /** Units by rule: held by reservations made here; charged, and charged in excess of what was held, by settlements made here. */
  readonly rules: ReadonlyMap<string, ReservedUnits>;
}

export interface ReservedUnits {
  readonly held: number;
  readonly charged: number;
  readonly overrun: number;
}

/** Rules counted by name. The operator decides how many rules there are, but former rules stay in the table. */
const MOST_RULES = 10_000;

export class ReservationCounts {
  readonly #rules = new Map<string, { held: number; charged: number; overrun: number }>();
  #opened = 0;
  #settled = 0;
  expired = 0;

  opened(held: Readonly<Record<string, number>>): void {
    this.#opened++;
    for (const [rule, units] of Object.entries(held)) this.#of(rule).held += units;
  }

  settled({ charged, overrun }: Settlement): void {
    this.#settled++;
    for (const [rule, units] of Object.entries(charged)) this.#of(rule).charged += units;
    for (const [rule, units] of Object.entries(overrun)) this.#of(rule).overrun += units;
  }

  read({ open, kept, dropped }: { open: number; kept: number; dropped: number }): ReservationStats {
    const { expired } = this;
    return { opened: this.#opened, settled: this.#settled, expired, open, pending: kept, dropped, rules: this.#rules };
  }

  of(rule: string): ReservedUnits | undefined {
    return this.#rules.get(rule);
  }

  #of(rule: string): { held: number; charged: number; overrun: number } {
    let units = this.#rules.get(rule);
    if (units === undefined) {
      if (this.#rules.size >= MOST_RULES) this.#rules.clear();
      units = { held: 0, charged: 0, overrun: 0 };
      this.#rules.set(rule, units);
    }
    return units;
  }
}
