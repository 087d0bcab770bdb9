/**
 * Readings of what moves without being a count: utilisation, limits, requests that wait. Read once a second and added up, so that they
 * go through the history as counts do: a mean is the sum of the readings by their number, over instances and time.
 * Bounded: the first rules of each kind.
 */
import type { Limiter, SheddingStats } from "sluice";
import type { Counted } from "../history/history.js";

/** Rules of each kind that are read. */
export const MOST_LOAD_RULES = 100;
/** Classes of a rule: their names are the operator's. */
const MOST_CLASSES = 20;
/** Shares are kept in thousandths: the history holds whole numbers. */
const THOUSAND = 1_000;

/** In the order of the cells. Each gauge has its sum, then the number of its readings. */
export const readingNames = [
  "inFlightUse",
  "inFlightUses",
  "loopUse",
  "loopUses",
  "reportedUse",
  "reportedUses",
  "places",
  "inFlight",
  "placesSeen",
  "limit",
  "limits",
  "limitUse",
  "limitUses",
  "waiting",
] as const satisfies readonly Counted[];

type Reading = (typeof readingNames)[number];

type LoadSource = Pick<Limiter, "sheddingStats" | "adaptiveStats" | "waitingStats">;

/** The name of a class's series: no rule has a colon in its id. */
export function classSeries(rule: string, name: string): string {
  return `class:${rule}:${name}`;
}

export class LoadReadings {
  readonly #limiter: LoadSource;
  readonly #byRule = new Map<string, Float64Array>();
  readonly #byClass = new Map<string, readonly [passed: number, shed: number]>();

  constructor(limiter: LoadSource) {
    this.#limiter = limiter;
  }

  /** Once a second. */
  sample(): void {
    this.#byClass.clear();
    for (const stats of this.#limiter.sheddingStats().slice(0, MOST_LOAD_RULES)) this.#addShedding(stats);
    for (const stats of this.#limiter.adaptiveStats().slice(0, MOST_LOAD_RULES)) {
      const { rule, limit, utilisation } = stats;
      this.#add(rule, { limit, limits: 1, ...useOf(utilisation, "limitUse", "limitUses") });
    }
    for (const [rule, waiting] of this.#limiter.waitingStats()) {
      this.#add(rule, { waiting });
    }
  }

  /** Sums by rule, which only grow. */
  rules(): Iterable<[rule: string, cells: Float64Array]> {
    return this.#byRule;
  }

  /** Requests of each class that passed and were shed, by series. */
  classes(): Iterable<[series: string, counts: readonly [passed: number, shed: number]]> {
    return this.#byClass;
  }

  #addShedding({ rule, signals, limit, inFlight, classes }: SheddingStats): void {
    for (const { name, passed, shed } of classes.slice(0, MOST_CLASSES)) {
      this.#byClass.set(classSeries(rule, name), [passed, shed]);
    }
    this.#add(rule, {
      ...useOf(signals.inflight, "inFlightUse", "inFlightUses"),
      ...useOf(signals["event-loop"], "loopUse", "loopUses"),
      ...useOf(signals.reported, "reportedUse", "reportedUses"),
      ...(limit !== undefined && { places: limit, inFlight, placesSeen: 1 }),
    });
  }

  /** Not past the bound: rules come and go over months. */
  #add(rule: string, readings: Partial<Record<Reading, number>>): void {
    const cells = this.#byRule.get(rule) ?? new Float64Array(readingNames.length);
    if (!this.#byRule.has(rule)) {
      if (this.#byRule.size >= 4 * MOST_LOAD_RULES) return;
      this.#byRule.set(rule, cells);
    }
    for (const [name, value] of Object.entries(readings)) {
      cells[readingNames.indexOf(name as Reading)]! += Math.round(value);
    }
  }
}

function useOf(value: number | undefined, sum: Reading, seen: Reading): Partial<Record<Reading, number>> {
  return value === undefined ? {} : { [sum]: Math.round(value * THOUSAND), [seen]: 1 };
}

/** The mean of a gauge's readings; null where there were none: unknown is not 0. */
export function meanOf(sum: number | undefined, seen: number | undefined): number | null {
  return seen === undefined || seen === 0 ? null : (sum ?? 0) / seen;
}

export function meanShare(sum: number | undefined, seen: number | undefined): number | null {
  const mean = meanOf(sum, seen);
  return mean === null ? null : mean / THOUSAND;
}
