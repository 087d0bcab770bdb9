/** The judge itself: a store that does what it must not is caught, and the run is shrunk to the steps that show it. */
import { afterEach, expect, test, vi } from "vitest";
import { rollingWindow } from "../../packages/sluice/src/algorithms/rolling-window.js";
import { Lease } from "../../packages/sluice/src/limiter/lease.js";
import { KeptSettlements } from "../../packages/sluice/src/reservations/kept-settlements.js";
import { MemoryHolds } from "../../packages/sluice/src/store/memory/memory-holds.js";
import { RequestRecords } from "../../packages/sluice/src/store/memory/request-records.js";
import type { Scenario } from "./plan.js";
import { counting } from "./scenarios/counting.js";
import { ids } from "./scenarios/ids.js";
import { leases } from "./scenarios/leases.js";
import { outages } from "./scenarios/outages.js";
import { reservations } from "./scenarios/reservations.js";
import { shrink } from "./shrink.js";
import { runWorld } from "./world.js";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The first violation among some seeds. */
async function firstViolation(scenario: Scenario): Promise<{ seed: number; violation: string; steps: number }> {
  for (let seed = 1; seed <= 200; seed++) {
    const { violation, steps } = await runWorld({ scenario, seed });
    if (violation !== undefined) return { seed, violation, steps };
  }
  throw new Error(`200 seeds of ${scenario.name} saw nothing`);
}

test("a window that forgets too early is caught, and shrunk to a few steps", async () => {
  const { look } = rollingWindow;
  vi.spyOn(rollingWindow, "look").mockImplementation((state, policy, cost, nowMs, strict) =>
    look(state, { ...policy, windowMs: Math.ceil(policy.windowMs * 0.9) }, cost, nowMs, strict),
  );
  const { seed, violation, steps } = await firstViolation(counting);
  expect(violation).toMatch(/\d+ of \d+ in the \d+ ms|of its share/);
  const { keep, result } = await shrink({ scenario: counting, seed }, steps);
  expect(result.violation).toBeDefined();
  expect(keep.length).toBeLessThan(steps / 4);
});

test("a store that forgets request ids is caught", async () => {
  vi.spyOn(RequestRecords.prototype, "find").mockReturnValue(undefined);
  expect((await firstViolation(ids)).violation).toMatch(/is charged 2 times/);
});

test("a holder that does not stop at the end of its lease is caught", async () => {
  vi.spyOn(Lease.prototype, "signal", "get").mockImplementation(() => new AbortController().signal);
  expect((await firstViolation(leases)).violation).toMatch(/places of \d+ are held/);
});

test("instances that take the whole limit for their share are caught", async () => {
  const whole: Scenario = { ...outages, plan: (random) => ({ ...outages.plan(random), countedInstances: 1 }) };
  expect((await firstViolation(whole)).violation).toMatch(/all instances admitted/);
});

test("a store that charges other than what it answers to a settlement is caught", async () => {
  const { settle } = MemoryHolds.prototype;
  vi.spyOn(MemoryHolds.prototype, "settle").mockImplementation(function (this: MemoryHolds, reserved, amounts, how) {
    const less = new Map([...amounts].map(([name, units]) => [name, Math.floor(units / 2)]));
    const { isNew, isOwn, counters } = settle.call(this, reserved, less, how);
    const charged = reserved.counters.map(({ cost }, i) => amounts.get(cost) ?? counters[i]!.charged);
    return { isNew, isOwn, counters: isNew ? counters.map((one, i) => ({ ...one, charged: charged[i]! })) : counters };
  });
  expect((await firstViolation(reservations)).violation).toMatch(/were settled or are held|and answers/);
});

test("a settlement that is not sent again when the store is back is caught", async () => {
  vi.spyOn(KeptSettlements.prototype, "keep").mockImplementation(() => undefined);
  expect((await firstViolation(reservations)).violation).toMatch(/told and never settled/);
});
