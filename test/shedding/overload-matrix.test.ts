/**
 * The gate of load shedding: the shipped shedder with `limit: auto` in every scenario of the issue, in virtual time, seeded.
 * `npm run bench` prints the same beside what others have published.
 */
import { ruleBook } from "sluice";
import { LoadShedder } from "sluice/internal";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  inRealTime,
  type Outcome,
  runScenario,
  type Scenario,
  scenarios,
  starved,
} from "../../bench/overload-model.mjs";
import { sluiceContestant } from "../../bench/overload-sluice.mjs";

const SEEDS = [1];
/** A server that refuses nine of ten requests works for the refusals too: 2.3 % at 10x. */
const outcomeOf = (scenario: Scenario): Outcome[] =>
  SEEDS.map((seed) =>
    runScenario(scenario, sluiceContestant({ LoadShedder, ruleBook }, { limit: "auto", scenario }), seed),
  );

// Ranks are hashed anew every ten minutes of the wall clock: which users pass, and so by how much a tenant misses its share, would be
// another thing at every hour of the day.
beforeAll(() => {
  vi.useFakeTimers({ now: 0, toFake: ["Date"] });
});
afterAll(() => {
  vi.useRealTimers();
});

describe.each(scenarios.map((scenario) => [scenario.name, scenario] as const))("%s", (name, scenario) => {
  let outcomes: Outcome[];
  beforeAll(() => {
    outcomes = outcomeOf(scenario);
  });

  test("goodput is at least 90 % of capacity, 95 % at 10x", () => {
    for (const { goodput } of outcomes) expect(goodput).toBeGreaterThanOrEqual(name === "10x" ? 0.95 : 0.9);
  });

  test("critical requests are served: 99 %, 99.9 % at 10x", () => {
    if (scenario.allCritical) return;
    for (const { critical } of outcomes) expect(critical).toBeGreaterThanOrEqual(name === "10x" ? 0.999 : 0.99);
  });

  test("the p99 of admitted requests is at most twice that of an idle server", () => {
    for (const { p99, unloadedP99 } of outcomes) expect(p99).toBeLessThanOrEqual(2 * unloadedP99);
  });

  test("once settled, what is delivered moves by at most 10 %", () => {
    for (const { oscillation } of outcomes) expect(oscillation).toBeLessThanOrEqual(0.1);
  });

  test("a tenant with ten times the traffic takes no more than its share of a class", () => {
    if (scenario.tenants === undefined) return;
    // A twentieth; a tenth of that is what chance makes of 700 requests of each tenant.
    for (const { noisyShare } of outcomes) expect(noisyShare).toBeLessThanOrEqual(1.1 / scenario.tenants.length);
  });
});

test("at 200 requests a second, where noise is larger than what the limit changes, the limit stays near the places", () => {
  const scenario = inRealTime(scenarios[0]!);
  for (const { limit, goodput, critical } of outcomeOf(scenario)) {
    expect(limit).toBeLessThan(2.5 * scenario.places);
    expect(goodput).toBeGreaterThanOrEqual(0.95);
    expect(critical).toBeGreaterThanOrEqual(0.999);
  }
});

test("a process that is paused three eighths of the time does not make the limit run away", () => {
  const scenario = inRealTime(starved);
  for (const { limit, critical } of outcomeOf(scenario)) {
    expect(limit).toBeLessThan(4 * scenario.places);
    expect(critical).toBeGreaterThanOrEqual(0.99);
  }
});
