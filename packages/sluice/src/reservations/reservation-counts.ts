/**
 * Figures about the reservations of one limiter, since its start: how many, and how many units, by rule.
 */
import type { Settlement } from "../decision.js";

export interface ReservationStats {
  /** Made here. */
  readonly opened: number;
  /** Settled or cancelled through this instance, whoever made them. */
  readonly settled: number;
  /** Made here, and never settled by anyone. */
  readonly expired: number;
  /** Made here, and not seen settled yet. */
  readonly open: number;
  /** Settlements that wait for the store, and those that were given up. */
  readonly pending: number;
  readonly dropped: number;
  /** Units by rule: held by reservations that were made here; charged, and charged beyond what was held, by settlements here. */
  readonly rules: ReadonlyMap<string, ReservedUnits>;
}

export interface ReservedUnits {
  readonly held: number;
  readonly charged: number;
  readonly overrun: number;
}

/** Rules that are counted by name: their number is the operator's, but what was a rule once stays in the table. */
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
