import type { Decision } from "sluice";
import { expect, test } from "vitest";
import { MOST_CLIENT_LABEL_SETS, ReferenceMetrics } from "./reference-metrics.js";
import type { Asked } from "./should-rate-limit.js";

interface Given {
  readonly key?: string;
  readonly fromClient?: boolean;
  readonly hits?: number;
  readonly allowed?: boolean;
  readonly remaining?: number;
  readonly debt?: number;
  readonly shadow?: boolean;
  readonly isCounted?: boolean;
}

/** A limit of 10 a unit, near from 8 on. */
function add(metrics: ReferenceMetrics, given: Given = {}): void {
  const { key = "d.user", fromClient = false, hits = 1, allowed = true, remaining = 9, debt, shadow = false } = given;
  const asked = {
    limit: {
      kind: "placed",
      metricKey: () => ({ text: key, fromClient }),
      placed: { shadow, limit: { requestsPerUnit: 10 } },
    },
    check: { allowed, limit: 10, remaining, debt },
    hits,
    descriptor: { isNegativeHits: false, entries: [] },
  } as unknown as Asked;
  metrics.add(asked, { domain: "d", decision: { allowed } as Decision, isCounted: given.isCounted ?? false });
}

function read(metrics: ReferenceMetrics): Record<string, number> {
  return Object.fromEntries(
    metrics
      .metrics()
      .flatMap(({ name, read: samples }) =>
        [...samples()].map(({ value, labels }) => [
          `${name.replace(/^ratelimit_service_(rate_limit_)?/, "")} ${Object.values(labels).join(" ")}`.trim(),
          value,
        ]),
      ),
  );
}

test("hits within the limit are near from the near share on, as the reference reckons it", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(metrics, { hits: 8, remaining: 2 });
  expect(read(metrics)).toEqual({ "total_hits d user": 8, "within_limit d user": 8 });
  add(metrics, { hits: 2, remaining: 0 });
  expect(read(metrics)).toMatchObject({ "within_limit d user": 10, "near_limit d user": 2 });
});

test("hits that are refused as one and not counted are all past the limit", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(metrics, { hits: 5, allowed: false, remaining: 1 });
  expect(read(metrics)).toEqual({ "total_hits d user": 5, "over_limit d user": 5 });
});

test("hits that cross the limit and are counted are split: up to it near, past it over", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(metrics, { hits: 5, allowed: false, remaining: 0, debt: 2, isCounted: true });
  expect(read(metrics)).toEqual({ "total_hits d user": 5, "over_limit d user": 2, "near_limit d user": 2 });
});

test("in shadow mode hits past the limit are counted twice: as over, and as let through", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(metrics, { hits: 3, allowed: false, remaining: 0, shadow: true });
  expect(read(metrics)).toMatchObject({ "over_limit d user": 3, "shadow_mode d user": 3 });
});

test("names are cut at their dots to two levels; colons and the dots of IPv4 addresses are none", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(metrics, { key: "d.path_/v1.user_42.more_1" });
  add(metrics, { key: "d.ip_10.0.0.1:80" });
  expect(Object.keys(read(metrics)).filter((name) => name.startsWith("total"))).toEqual([
    "total_hits d path_/v1 user_42",
    "total_hits d ip_10_0_0_1_80",
  ]);
});

test("label sets with values of clients are bounded; further and too long ones are counted together", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8, mostClientLabelSets: 2 });
  for (const user of ["a", "b", "c", "d", "a"]) add(metrics, { key: `d.user_${user}`, fromClient: true });
  add(metrics, { key: "d.from-the-file" });
  expect(read(metrics)).toMatchObject({
    "total_hits d user_a": 2,
    "total_hits d user_b": 1,
    "total_hits d (other)": 2,
    "total_hits d from-the-file": 1,
  });
  const roomy = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(roomy, { key: `d.${"x".repeat(201)}`, fromClient: true });
  expect(read(roomy)).toMatchObject({ "total_hits d (other)": 1 });
  expect(MOST_CLIENT_LABEL_SETS).toBe(2_000);
});

test("events are shown from the first on, errors under their type", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  metrics.note("redis_error");
  metrics.note("redis_error");
  metrics.note("total_requests");
  expect(read(metrics)).toEqual({
    "total_requests ShouldRateLimit": 1,
    "should_rate_limit_error redis_error": 2,
  });
});
