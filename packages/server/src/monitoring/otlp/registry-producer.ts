/** Converts the metrics of `/metrics` for OpenTelemetry's SDK: the same names, the same labels. */
import { type HrTime, ValueType } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import type { Registry } from "prom-client";

interface ReadMetric {
  readonly name: string;
  readonly help: string;
  readonly type: unknown;
  readonly values?: readonly { value: number; labels: Record<string, string | number>; metricName?: string }[];
}

export function registryProducer(registry: Registry, resource: Resource): MetricProducer {
  const startTime = timeOf(Date.now());
  return {
    async collect() {
      const read = (await registry.getMetricsAsJSON()) as unknown as ReadMetric[];
      const times = { startTime, endTime: timeOf(Date.now()) };
      const metrics = read.filter(({ values = [] }) => values.length > 0).map((metric) => dataOf(metric, times));
      return { resourceMetrics: { resource, scopeMetrics: [{ scope: { name: "sluice" }, metrics }] }, errors: [] };
    },
  };
}

interface Times {
  readonly startTime: HrTime;
  readonly endTime: HrTime;
}

function dataOf(metric: ReadMetric, times: Times): MetricData {
  const { name, help, values = [] } = metric;
  const descriptor = {
    name,
    description: help,
    unit: name.endsWith("_seconds") ? "s" : "",
    valueType: ValueType.DOUBLE,
  };
  const aggregationTemporality = AggregationTemporality.CUMULATIVE;
  if (metric.type === "histogram") {
    return {
      descriptor,
      aggregationTemporality,
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints: histograms(metric, times),
    };
  }
  const dataPoints = values.map(({ value, labels }) => ({ ...times, attributes: labels, value }));
  return metric.type === "counter"
    ? { descriptor, aggregationTemporality, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { descriptor, aggregationTemporality, dataPointType: DataPointType.GAUGE, dataPoints };
}

/** Prometheus buckets are cumulative, OpenTelemetry's are not. */
function histograms({ name, values = [] }: ReadMetric, times: Times) {
  const byLabels = new Map<
    string,
    { labels: Record<string, string | number>; le: [number, number][]; sum: number; count: number }
  >();
  for (const {
    value,
    labels: { le, ...labels },
    metricName,
  } of values) {
    const key = JSON.stringify(labels);
    const found = byLabels.get(key) ?? { labels, le: [], sum: 0, count: 0 };
    byLabels.set(key, found);
    if (metricName === `${name}_sum`) found.sum = value;
    else if (metricName === `${name}_count`) found.count = value;
    else if (le !== undefined && le !== "+Inf") found.le.push([Number(le), value]);
  }
  return Array.from(byLabels.values(), ({ labels, le, sum, count }) => {
    const sorted = le.sort(([a], [b]) => a - b);
    const cumulative = [...sorted.map(([, value]) => value), count];
    const counts = cumulative.map((value, i) => value - (cumulative[i - 1] ?? 0));
    return {
      ...times,
      attributes: labels,
      value: { buckets: { boundaries: sorted.map(([bound]) => bound), counts }, sum, count },
    };
  });
}

function timeOf(ms: number): HrTime {
  return [Math.floor(ms / 1_000), (ms % 1_000) * 1_000_000];
}
