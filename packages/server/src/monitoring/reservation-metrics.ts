/** The metrics of reservations: how many, how they ended, and how many units. */
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

export function reservationMetrics(limiter: Pick<Limiter, "reservationStats">): ReadableMetric[] {
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
        help: "Units of reservations: held by checks, charged by settlements, and what of that was beyond what was held.",
        type: "counter",
      },
      () => kinds.map((kind): Sample => ({ value: sumOf(limiter.reservationStats(), kind), labels: { kind } })),
    ),
  ];
}

function sumOf({ rules }: ReservationStats, kind: keyof ReservedUnits): number {
  let sum = 0;
  for (const units of rules.values()) sum += units[kind];
  return sum;
}
