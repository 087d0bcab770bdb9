/** The counters in which a reservation holds units, by the reservation's id: for listeners of `settled` and `expired`. */
import type { CheckMode } from "../decision.js";
import { parseReservationId } from "../reservations/reservation-id.js";

export function reservedCounters(reservationId: string): { rule: string; mode: CheckMode; key: string }[] {
  return parseReservationId(reservationId).reserved.counters.map(({ rule, mode, key }) => ({ rule, mode, key }));
}
