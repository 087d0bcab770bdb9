/** The counters that a reservation holds units of, by its id: for those who follow `settled` and `expired`. */
import type { CheckMode } from "../decision.js";
import { parseReservationId } from "../reservations/reservation-id.js";

export function reservedCounters(reservationId: string): { rule: string; mode: CheckMode; key: string }[] {
  return parseReservationId(reservationId).reserved.counters.map(({ rule, mode, key }) => ({ rule, mode, key }));
}
