import type { Rule } from "sluice";
import { expect, test } from "vitest";
import { keyLengthOf, type PlanInput, planFor, tableBytes } from "./plan.js";

const rule = (more: object = {}): Rule =>
  ({ id: "per-user", key: ["user"], algorithm: "token-bucket", limit: 100, window: "1m", ...more }) as Rule;
const input = (more: Partial<PlanInput> = {}): PlanInput => ({
  rules: [rule()],
  keys: 1_000,
  rate: 100,
  valueLength: 8,
  instances: 2,
  nodeBytes: 2 ** 30,
  microseconds: 50,
  isMeasured: false,
  ...more,
});

test("the key length equals that of the store's key", () => {
  // sluice:1:{user=12345678}:per-user:z
  expect(keyLengthOf(rule(), 8)).toBe("sluice:1:{user=12345678}:per-user:z".length);
  expect(keyLengthOf(rule({ key: ["user", "path"] }), 8)).toBe(
    "sluice:1:{user=12345678&path=12345678}:per-user:z".length,
  );
  expect(keyLengthOf(rule({ key: [] }), 8)).toBe("sluice:1:{*}:per-user:z".length);
});

test("units per key are the arrivals in a window, at least one and at most the limit", () => {
  const units = (more: Partial<PlanInput>): number => planFor(input(more)).rules[0]!.unitsPerKey;
  expect(units({ rate: 100, keys: 1_000 })).toBe(6);
  expect(units({ rate: 1, keys: 1_000 })).toBe(1);
  expect(units({ rate: 100_000, keys: 1_000 })).toBe(100);
});

test("tables: an expiry entry per key, and two tables with a power of two of slots", () => {
  expect(tableBytes(0)).toBe(0);
  expect(tableBytes(1_024)).toBe(1_024 * 40 + 16 * 1_024);
  expect(tableBytes(1_025)).toBe(1_025 * 40 + 16 * 2_048);
});

test("processor time, connections and nodes follow their formulas", () => {
  const plan = planFor(input({ rate: 30_000 }));
  expect(plan.cpu).toMatchObject({
    cores: 1.5,
    formula: expect.stringContaining("30000 requests a second x 50 us (assumed"),
  });
  expect(plan.nodes.count).toBe(3);
  expect(plan.connections.count).toBe(24);
  expect(plan.warnings).toEqual(["one Redis cannot run this many scripts a second: use a cluster"]);
  expect(planFor(input({ isMeasured: true })).cpu.formula).toContain("(measured)");
});

test("a single Redis suffices for little load, and a cluster has at least three leaders", () => {
  expect(planFor(input()).nodes.count).toBe(1);
  expect(planFor(input({ rate: 12_000 })).nodes.count).toBe(3);
});

test("warns about a counter that a cluster cannot spread, and about the rule that fills the memory", () => {
  const hot = planFor(input({ rules: [rule({ id: "all", key: [] })], rate: 30_000 }));
  expect(hot.warnings).toContain(
    "all has one counter: a cluster does not spread it; 30000 requests a second all meet one node",
  );
  const large = rule({ id: "log", algorithm: "rolling-window", limit: 10_000 });
  expect(planFor(input({ rules: [rule(), large], keys: 100_000 })).warnings).toEqual([
    "full keys do not fit into one node of 1024 MiB: use a cluster, or a smaller algorithm",
    expect.stringMatching(/^log takes \d+ % of the memory at full keys: a sliding counter/),
  ]);
});

test("a rule that is off needs nothing", () => {
  expect(planFor(input({ rules: [rule({ mode: "off" })] })).rules).toEqual([]);
});
