/** Metrics of reservations: how many, how they ended, and how many units. */
import type { Limiter, ReservationStats, ReservedUnits } from "sluice";
import { type ReadableMetric, readableMetric, type Sample } from "./readable-metric.js";

/** Each with its meaning, and where it is read. */
const figures: readonly (readonly [name: string, help: string, read: (stats: ReservationStats) => number])[] = [
  ["opened_total", "Reservations that this instance made.", ({ opened }) => opened],
  ["settled_total", "Reservations that were settled or cancelled through this instance.", ({ settled }) => settled],
  [
    "expired_total",
    "Reservations that this instance made and nobody settled: what they held stands as spent.",
    ({ expired }) => expired,
  ],
  [
    "dropped_total",
    "Settlements that were given up: the store did not answer before their reservations ended.",
    ({ dropped }) => dropped,
  ],
  ["open", "Reservations that this instance made and has not seen settled.", ({ open }) => open],
  ["pending", "Settlements that wait for the store to answer again.", ({ pending }) => pending],
];

const kinds: readonly (keyof ReservedUnits)[] = ["held", "charged", "overrun"];

/** For rules without a unit. */
const NO_UNIT = "";
/** Unit names are configured by the operator; beyond this many, the rest is summed under an empty name. */
const MOST_UNITS = 32;

export function reservationMetrics(limiter: Pick<Limiter, "reservationStats" | "findRule">): ReadableMetric[] {
  const units = new UnitSums(limiter);
  const metrics = figures.map(([name, help, read]) =>
    readableMetric(
      { name: `sluice_reservations_${name}`, help, type: name.endsWith("_total") ? "counter" : "gauge" },
      (): Sample[] => [{ value: read(limiter.reservationStats()), labels: {} }],
    ),
  );
  return [
    ...metrics,
    readableMetric(
      {
        name: "sluice_reservations_units_total",
        help: "Units of reservations, by the unit of their rule: held by checks, charged by settlements, and what of that was beyond what was held.",
        type: "counter",
      },
      () => units.samples(),
    ),
  ];
}

/** Tokens and microdollars do not add up: one series per unit. */
class UnitSums {
  readonly #limiter: Pick<Limiter, "reservationStats" | "findRule">;
  /** By rule, including deleted ones: a series must never decrease because units moved to another one. */
  #unitOf: ReadonlyMap<string, string> = new Map();

  constructor(limiter: Pick<Limiter, "reservationStats" | "findRule">) {
    this.#limiter = limiter;
  }

  samples(): Sample[] {
    const unitOf = new Map<string, string>();
    const sums = new Map<string, Record<keyof ReservedUnits, number>>([[NO_UNIT, { held: 0, charged: 0, overrun: 0 }]]);
    for (const [rule, units] of this.#limiter.reservationStats().rules) {
      const named = this.#unitOf.get(rule) ?? this.#limiter.findRule(rule)?.unit ?? NO_UNIT;
      const unit = sums.has(named) || sums.size < MOST_UNITS ? named : NO_UNIT;
      unitOf.set(rule, unit);
      const sum = sums.get(unit) ?? { held: 0, charged: 0, overrun: 0 };
      for (const kind of kinds) sum[kind] += units[kind];
      sums.set(unit, sum);
    }
    this.#unitOf = unitOf;
    return [...sums].flatMap(([unit, sum]) =>
      kinds.map((kind): Sample => ({ value: sum[kind], labels: { kind, unit } })),
    );
  }
}
