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

/** A gauge whose requests take 80 ms. */
function servedOnce() {
  const { slot, places } = held(0);
  places.take("first", [slot], 0);
  places.release("first", 80);
  return { slot, places };
}

test("if a client disconnects, its place is freed when a request usually ends, not before", () => {
  const { slot, places } = servedOnce();
  for (const [i, leavesMs] of [101, 170, 120].entries()) {
    places.take(`l${i}`, [slot], 100 + i);
    expect(places.release(`l${i}`, leavesMs, "left")).toBe(true);
  }
  places.freeLeft(179);
  expect(slot.gauge.inFlight).toBe(3);
  places.freeLeft(181);
  expect(slot.gauge.inFlight).toBe(1);
  places.freeLeft(182);
  expect(slot.gauge.inFlight).toBe(0);
  expect(slot.gauge.usualLatencyMs).toBe(80);
});

test("a stream that its client ends after longer than usual frees its place at once", () => {
  const { slot, places } = servedOnce();
  places.take("stream", [slot], 100);
  places.release("stream", 60_100, "left");
  expect(slot.gauge.inFlight).toBe(0);
});

test("before anything was served, the place of a disconnected client is held for at most a second", () => {
  const { slot, places } = held(1);
  places.release("p0", 1, "left");
  places.freeLeft(999);
  expect(slot.gauge.inFlight).toBe(1);
  places.freeLeft(1_000);
  expect(slot.gauge.inFlight).toBe(0);
});

test("a request that waits for its turn is not in flight; if it is released or expires meanwhile, nothing is freed twice", () => {
  const { slot, places } = held(3);
  for (const id of ["p0", "p1", "p2", "p2"]) places.pause(id, 10);
  expect(slot.gauge.inFlight).toBe(0);
  places.resume("p0", 500);
  places.resume("p0", 500);
  expect(slot.gauge.inFlight).toBe(1);
  expect(places.release("p1", 600)).toBe(true);
  places.freeExpired(PLACE_TTL_MS);
  expect(slot.gauge.inFlight).toBe(0);
  places.resume("p1", 700);
  places.resume("p2", PLACE_TTL_MS);
  expect(slot.gauge.inFlight).toBe(0);
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
