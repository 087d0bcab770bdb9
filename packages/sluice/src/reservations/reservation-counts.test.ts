import { expect, test } from "vitest";
import { ReservationCounts } from "./reservation-counts.js";

test("units are summed up by rule", () => {
  const counts = new ReservationCounts();
  counts.opened({ a: 10, b: 1 });
  counts.opened({ a: 10 });
  counts.settled({ settled: true, charged: { a: 25 }, overrun: { a: 5 } });
  counts.expired++;
  const { rules, ...numbers } = counts.read({ open: 1, kept: 2, dropped: 3 });
  expect(numbers).toEqual({ opened: 2, settled: 1, expired: 1, open: 1, pending: 2, dropped: 3 });
  expect(Object.fromEntries(rules)).toEqual({
    a: { held: 20, charged: 25, overrun: 5 },
    b: { held: 1, charged: 0, overrun: 0 },
  });
});
