import { expect, test } from "vitest";
import type { TopKeysView } from "../monitoring/views/keys.js";
import type { LiveView } from "../monitoring/views/stats.js";
import { printable } from "../printable.js";
import { drawTop, lineOf, sparkline } from "./top-screen.js";

const same = (text: string): string => text;
const paint = { bold: same, dim: same, red: same, green: same, yellow: same };
const view: LiveView = {
  atMs: Date.UTC(2026, 0, 2, 3, 4, 5),
  scope: "fleet",
  instances: 2,
  rulesVersion: 7,
  allowedPerSecond: 12_345,
  refusedPerSecond: 55,
  shadowRefusedPerSecond: 3,
  degradedPerSecond: 0,
  unmatchedPerSecond: 0,
  latency: { p50Ms: 0.2, p95Ms: 1, p99Ms: 1.5 },
  eventLoopUtilisation: 0.42,
  store: {
    kind: "redis",
    state: "degraded",
    degradedInstances: 1,
    outage: { sinceMs: 0, cause: "Redis does not answer in time", partial: false },
  },
  rules: [
    { rule: "per-user", allowed: 900, refused: 100 },
    { rule: `long-${"x".repeat(60)}`, allowed: 10, refused: 0 },
  ],
  alertsFiring: 1,
};
const topKeys: TopKeysView = {
  atMs: view.atMs,
  window: "hour",
  by: "traffic",
  scope: "fleet",
  more: false,
  maxError: 4,
  keys: [
    { rule: "per-user", attributes: { user: "\u001b[2J\u202Eevil\n" }, count: 99, refused: 1, peakUtilisation: 1 },
  ],
};

test.each([60, 100, 200])("nothing is wider than a screen of %i columns", (columns) => {
  const lines = drawTop({ server: "http://s", views: [view], topKeys, stale: undefined, columns, rows: 30 }, paint);
  expect(Math.max(...lines.slice(0, 2).map((line) => line.length))).toBeLessThanOrEqual(columns);
  const tables = lines.slice(lines.findIndex((line) => line.startsWith("busiest")));
  expect(Math.max(...tables.map((line) => line.length))).toBeLessThanOrEqual(columns);
});

test("the screen shows rates, store, alerts, rules and keys, and when its figures are stale", () => {
  const draw = (stale?: string): string =>
    drawTop({ server: "http://s", views: [view], topKeys, stale, columns: 100, rows: 30 }, paint).join("\n");
  expect(draw()).toContain("12,345/s");
  expect(draw()).toContain("(0.4 %)");
  expect(draw()).toContain(
    "store redis degraded (Redis does not answer in time) · alerts 1 firing · event loop 42 % · instances 2 · rules version 7",
  );
  expect(draw()).toContain("at most 4 too high");
  expect(draw()).toMatch(/per-user +900 +100 {2}█+/);
  expect(draw()).not.toContain("STALE");
  expect(draw("nothing listens")).toContain("STALE: nothing listens");
});

test("client input cannot control the terminal", () => {
  const drawn = drawTop({ server: "s", views: [view], topKeys, stale: undefined, columns: 100, rows: 30 }, paint);
  expect(drawn.join("\n")).not.toMatch(/\p{Cf}|(?!\n)\p{Cc}/u);
  expect(printable("a\u001b[31m\u0000\u009b\u2028b")).toBe("a·[31m···b");
});

test("a sparkline rises with its values, and is flat without any", () => {
  expect(sparkline([0, 1, 2, 4]).trim()).toBe("▁▃▅█");
  expect(sparkline([0, 0]).trim()).toBe("▁▁");
});

test("a piped line names its figures", () => {
  expect(lineOf(view)).toBe(
    "2026-01-02T03:04:05.000Z  allowed=12345  refused=55  shadowRefused=3  degraded=0  p50Ms=0.2  p99Ms=1.5  store=degraded  alerts=1",
  );
});
