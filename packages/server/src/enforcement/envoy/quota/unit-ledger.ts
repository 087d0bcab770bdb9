/**
 * What an Envoy may still have in hand of one rule's units, counted in requests. Pure: time is an argument.
 *
 * Envoy never confirms an assignment, and reports its uses later, without telling which assignment they came from. So this is an upper
 * bound, and it only falls with a report: an assignment that was replaced may be used until the replacement has arrived, one that has
 * expired may have been used before. Units that the bound no longer has are free in the store with the next fetch.
 */

/** How long a report may be on its way: one that arrives later than this after an assignment's end has all of its uses. */
const REPORT_TRANSIT_MS = 1_000;
/** Assignments are remembered until their end; more than these are put together. */
const MOST_ASSIGNMENTS = 16;

interface Assigned {
  units: number;
  /** Envoy has stopped using it by then. */
  endsAtMonotonicMs: number;
}

export class UnitLedger {
  #assigned: Assigned[] = [];
  #inHand = 0;
  /** Units that the store has charged at their end: uses of these that are reported later are charged already. */
  #chargedAtEnd = 0;

  get inHand(): number {
    return this.#inHand;
  }

  /** Requests that passed since the last report: of those, how many units in hand cover, and how many nothing does. */
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

  /** A new assignment is on its way; the one before it may be used until it has arrived, or until its own end. */
  assign(units: number, endsAtMonotonicMs: number): void {
    this.#assigned.push({ units, endsAtMonotonicMs });
    this.#inHand += units;
    if (this.#assigned.length <= MOST_ASSIGNMENTS) return;
    const oldest = this.#assigned.shift()!;
    const next = this.#assigned[0]!;
    next.units += oldest.units;
    next.endsAtMonotonicMs = Math.max(next.endsAtMonotonicMs, oldest.endsAtMonotonicMs);
  }

  /** The last assignment lives on. */
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
