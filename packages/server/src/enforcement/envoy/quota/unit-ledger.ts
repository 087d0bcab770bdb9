/**
 * An upper bound on the units of one rule that an Envoy may still hold, counted in requests. Pure: time is an argument.
 *
 * Envoy never acknowledges an assignment, and later reports uses without saying which assignment they belong to. So the bound falls only
 * with reports: a replaced assignment may be used until its replacement arrives, and an expired one may have been used before. Units beyond
 * the bound are freed in the store by the next fetch.
 */

/** Maximum transit time of a report: one that arrives later than this after an assignment's end includes all of its uses. */
const REPORT_TRANSIT_MS = 1_000;
/** Assignments are kept until they end; beyond this number they are merged. */
const MOST_ASSIGNMENTS = 16;

interface Assigned {
  units: number;
  /** Envoy no longer uses it after this. */
  endsAtMonotonicMs: number;
}

export class UnitLedger {
  #assigned: Assigned[] = [];
  #inHand = 0;
  /** Units that the store charged when it ended them: later reports of their use must not be charged again. */
  #chargedAtEnd = 0;

  get inHand(): number {
    return this.#inHand;
  }

  /** Splits the requests since the last report into those covered by units in hand and the rest. */
  report(passed: number, nowMonotonicMs: number): { used: number; uncovered: number } {
    const rest = Math.max(0, passed - this.#chargedAtEnd);
    this.#chargedAtEnd = 0;
    const used = Math.min(rest, this.#inHand);
    this.#assigned = this.#assigned.filter(
      ({ endsAtMonotonicMs }) => endsAtMonotonicMs > nowMonotonicMs - REPORT_TRANSIT_MS,
    );
    const alive = this.#assigned.reduce((sum, { units }) => sum + units, 0);
    this.#inHand = Math.min(this.#inHand - used, alive);
    return { used, uncovered: rest - used };
  }

  /** Records a new assignment; the previous one may be used until the new one arrives, or until its own end. */
  assign(units: number, endsAtMonotonicMs: number): void {
    this.#assigned.push({ units, endsAtMonotonicMs });
    this.#inHand += units;
    if (this.#assigned.length <= MOST_ASSIGNMENTS) return;
    const oldest = this.#assigned.shift()!;
    const next = this.#assigned[0]!;
    next.units += oldest.units;
    next.endsAtMonotonicMs = Math.max(next.endsAtMonotonicMs, oldest.endsAtMonotonicMs);
  }

  extend(endsAtMonotonicMs: number): void {
    const last = this.#assigned.at(-1);
    if (last !== undefined) last.endsAtMonotonicMs = endsAtMonotonicMs;
  }

  /** The store has ended all units, and charged them as used. */
  end(): void {
    this.#chargedAtEnd += this.#inHand;
    this.#inHand = 0;
    this.#assigned = [];
  }
}
