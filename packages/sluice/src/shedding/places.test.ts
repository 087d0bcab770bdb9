import { expect, test } from "vitest";
import { sheddingPlan } from "../rules/shedding-plan.js";
import { Gauges } from "./gauges.js";
import { PLACE_TTL_MS, Places } from "./places.js";

const plan = sheddingPlan({ id: "s", key: [], algorithm: "load-shedding", signal: "inflight", limit: 4 });

function held(count: number) {
  const slot = new Gauges().slotOf(plan, "", 0);
  const places = new Places();
  for (let i = 0; i < count; i++) places.take(`p${i}`, [slot], 0);
  return { slot, places };
}

test("a place is released once", () => {
  const { slot, places } = held(2);
  expect([places.release("p0", 1), places.release("p0", 2), places.release("unknown", 2)]).toEqual([
    true,
    false,
    false,
  ]);
  expect(slot.gauge.inFlight).toBe(1);
});

test("places that nobody releases are freed after their term, renewed ones later", () => {
  const { slot, places } = held(3);
  expect(places.renew("p1", 20_000)).toBe(PLACE_TTL_MS);
  places.freeExpired(PLACE_TTL_MS - 1);
  expect(slot.gauge.inFlight).toBe(3);
  places.freeExpired(PLACE_TTL_MS);
  expect(slot.gauge.inFlight).toBe(1);
  expect(places.renew("p0", 31_000)).toBe(0);
  places.freeExpired(20_000 + PLACE_TTL_MS);
  expect(slot.gauge.inFlight).toBe(0);
});
