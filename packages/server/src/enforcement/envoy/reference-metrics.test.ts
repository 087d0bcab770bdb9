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

/** A limit of 10 per unit; the near-limit threshold is 8. */
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

test("hits within the limit count as near from the near-limit ratio on, with the reference's arithmetic", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(metrics, { hits: 8, remaining: 2 });
  expect(read(metrics)).toEqual({ "total_hits d user": 8, "within_limit d user": 8 });
  add(metrics, { hits: 2, remaining: 0 });
  expect(read(metrics)).toMatchObject({ "within_limit d user": 10, "near_limit d user": 2 });
});

test("hits that are refused together and not counted are all over the limit", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(metrics, { hits: 5, allowed: false, remaining: 1 });
  expect(read(metrics)).toEqual({ "total_hits d user": 5, "over_limit d user": 5 });
});

test("counted hits that cross the limit are split: near up to it, over beyond it", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(metrics, { hits: 5, allowed: false, remaining: 0, debt: 2, isCounted: true });
  expect(read(metrics)).toEqual({ "total_hits d user": 5, "over_limit d user": 2, "near_limit d user": 2 });
});

test("in shadow mode hits beyond the limit are counted twice: as over the limit, and as shadow mode", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(metrics, { hits: 3, allowed: false, remaining: 0, shadow: true });
  expect(read(metrics)).toMatchObject({ "over_limit d user": 3, "shadow_mode d user": 3 });
});

test("names are split at dots into two levels; colons and dots of IPv4 addresses do not split", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  add(metrics, { key: "d.path_/v1.user_42.more_1" });
  add(metrics, { key: "d.ip_10.0.0.1:80" });
  expect(Object.keys(read(metrics)).filter((name) => name.startsWith("total"))).toEqual([
    "total_hits d path_/v1 user_42",
    "total_hits d ip_10_0_0_1_80",
  ]);
});

test("label sets with client values are bounded; excess and overlong ones are counted together", () => {
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

test("events are exported from their first occurrence, errors by type", () => {
  const metrics = new ReferenceMetrics({ nearLimitRatio: 0.8 });
  metrics.note("redis_error");
  metrics.note("redis_error");
  metrics.note("total_requests");
  expect(read(metrics)).toEqual({
    "total_requests ShouldRateLimit": 1,
    "should_rate_limit_error redis_error": 2,
  });
});
