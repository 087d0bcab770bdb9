/**
 * Gauge readings that are not counts: utilisation, limits, waiting requests. Sampled once a second and summed, so that they can be stored
 * like counts: the mean is the sum divided by the number of readings, over instances and time.
 * Bounded: the first rules of each kind.
 */
import type { Limiter, SheddingStats } from "sluice";
import type { Counted } from "../history/history.js";

/** Rules sampled of each kind. */
export const MOST_LOAD_RULES = 100;
/** Classes per rule: their names are configured by the operator. */
const MOST_CLASSES = 20;
/** Shares are stored in thousandths, as the history holds whole numbers. */
const THOUSAND = 1_000;

/** In the order of the cells. Each gauge has its sum, then its number of readings. */
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

/** The series of a class: no rule id has a colon. */
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

  /** Called once a second. */
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

  /** Sums by rule; they only grow. */
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

  /** Bounded, because rules come and go over months. */
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

/** The mean of a gauge's readings; null without readings: unknown is not 0. */
export function meanOf(sum: number | undefined, seen: number | undefined): number | null {
  return seen === undefined || seen === 0 ? null : (sum ?? 0) / seen;
}

export function meanShare(sum: number | undefined, seen: number | undefined): number | null {
  const mean = meanOf(sum, seen);
  return mean === null ? null : mean / THOUSAND;
}
