import { expect, test } from "vitest";
import { sheddingPlan } from "../rules/shedding-plan.js";
import { Gauges } from "./gauges.js";

const rule = { id: "s", key: ["upstream"], algorithm: "load-shedding", signal: "inflight", limit: 4 } as const;
const plan = sheddingPlan(rule);

test("each value has its own gauge", () => {
  const gauges = new Gauges();
  const slot = gauges.slotOf(plan, "upstream=a", 0);
  expect(gauges.slotOf(plan, "upstream=a", 1)).toBe(slot);
  expect(gauges.slotOf(plan, "upstream=b", 1)).not.toBe(slot);
  expect([...gauges.all()]).toHaveLength(2);
});

test("a flood of values shares one gauge beyond the bound; idle ones make room", () => {
  const gauges = new Gauges();
  for (let i = 0; i < 5_000; i++) gauges.slotOf(plan, `upstream=${i}`, 0);
  expect([...gauges.all()].length).toBeLessThanOrEqual(1_001);
  const other = gauges.slotOf(plan, "upstream=x", 0);
  expect(gauges.slotOf(plan, "upstream=y", 0)).toBe(other);
  other.gauge.began(0);
  expect(gauges.slotOf(plan, "upstream=z", 61_000)).not.toBe(other);
  expect([...gauges.all()]).toContain(other);
});

test("the same numbers in a new book keep the gauge; other numbers keep the requests in flight", () => {
  const gauges = new Gauges();
  const slot = gauges.slotOf(plan, "upstream=a", 0);
  slot.gauge.began(0);
  const { gauge } = slot;
  expect(gauges.slotOf(sheddingPlan({ ...rule, description: "same" }), "upstream=a", 1).gauge).toBe(gauge);
  const changed = gauges.slotOf(sheddingPlan({ ...rule, limit: 8 }), "upstream=a", 2);
  expect(changed).toBe(slot);
  expect(changed.gauge).not.toBe(gauge);
  expect(changed.gauge.inFlight).toBe(1);
});
