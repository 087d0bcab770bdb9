/**
 * Pushes metrics and traces to an OpenTelemetry collector (OTLP over HTTP). Loaded only with `--otlp`.
 * Metrics are those of `/metrics`, read when they are sent: nothing is counted twice. A sampled request gets its span after its answer. A
 * slow or missing collector costs a bounded queue and a log line; checks are not delayed.
 */
import { trace as contexts, ROOT_CONTEXT, SpanKind } from "@opentelemetry/api";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { Registry } from "prom-client";
import type { Log } from "../../log.js";
import type { TracedRequest } from "../observe-requests.js";
import { registryProducer } from "./registry-producer.js";
import { parentOf } from "./trace-parent.js";

interface OtlpOptions {
  /** The collector's base URL, such as http://127.0.0.1:4318. */
  readonly url: string;
  readonly registry: Registry;
  /** Sampling rate of requests without a traceparent. */
  readonly traceShare: number;
  readonly version: string;
  readonly instance: string;
  readonly log: Log;
  /** Default 10 s. */
  readonly everyMs?: number;
}

export interface Otlp {
  /** Creates a span for the request, if it is sampled. */
  trace(request: TracedRequest): void;
  /** Flushes the queue, up to the deadline. */
  close(): Promise<void>;
}

const DEADLINE_MS = 3_000;
/** Bounds the size of a span of a request with many rules. */
const MOST_RULES = 20;

export function startOtlp(options: OtlpOptions): Otlp {
  const { url, registry, traceShare, version, instance, log, everyMs = 10_000 } = options;
  const base = url.replace(/\/+$/, "");
  const resource = resourceFromAttributes({
    "service.name": "sluice",
    "service.version": version,
    "service.instance.id": instance,
  });
  const settings = { timeoutMillis: DEADLINE_MS, concurrencyLimit: 2 };
  const metricExporter = toldOnce(new OTLPMetricExporter({ url: `${base}/v1/metrics`, ...settings }), "metrics", log);
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: everyMs,
    exportTimeoutMillis: Math.min(DEADLINE_MS, everyMs),
    metricProducers: [registryProducer(registry, resource)],
  });
  const meters = new MeterProvider({ resource, readers: [reader] });
  const spanExporter = toldOnce(new OTLPTraceExporter({ url: `${base}/v1/traces`, ...settings }), "traces", log);
  const spans = new BasicTracerProvider({
    resource,
    spanProcessors: [
      new BatchSpanProcessor(spanExporter, {
        maxQueueSize: 2_048,
        maxExportBatchSize: 512,
        scheduledDelayMillis: Math.min(2_000, everyMs),
        exportTimeoutMillis: DEADLINE_MS,
      }),
    ],
  });
  const tracer = spans.getTracer("sluice", version);

  return {
    trace({ transport, allowed, sinceMs, traceparent, decision }) {
      const parent = parentOf(traceparent);
      // Follow the caller's sampling decision, so that a trace is complete or absent.
      if (parent === undefined ? Math.random() >= traceShare : !parent.sampled) return;
      const context = parent === undefined ? ROOT_CONTEXT : contexts.setSpanContext(ROOT_CONTEXT, parent.context);
      const startTime = performance.timeOrigin + sinceMs;
      const attributes = {
        "sluice.transport": transport,
        "sluice.outcome": allowed ? "allowed" : "refused",
        ...(decision && {
          "sluice.rules": decision.checks.slice(0, MOST_RULES).map(({ rule }) => rule),
          "sluice.violated": decision.violated.slice(0, MOST_RULES),
          "sluice.rules_version": decision.rulesVersion,
          ...(decision.reason !== undefined && { "sluice.reason": decision.reason }),
          ...(decision.degraded !== undefined && { "sluice.degraded": decision.degraded }),
        }),
      };
      tracer.startSpan("sluice.check", { kind: SpanKind.SERVER, startTime, attributes }, context).end();
    },
    async close() {
      const sent = Promise.allSettled([meters.shutdown({ timeoutMillis: DEADLINE_MS }), spans.shutdown()]);
      const late = new Promise((resolve) => setTimeout(resolve, DEADLINE_MS).unref());
      await Promise.race([sent, late]);
    },
  };
}

interface Exporter {
  export(what: never, done: (result: { code: number; error?: Error }) => void): void;
}

/** Logs only the first of consecutive failures. */
function toldOnce<E extends Exporter>(exporter: E, what: string, log: Log): E {
  const send = exporter.export.bind(exporter);
  let failing = false;
  exporter.export = (batch, done) =>
    send(batch, (result) => {
      if (result.code !== 0 && !failing) {
        log.warn(`${what} could not be pushed to --otlp`, { error: String(result.error?.message ?? "unknown") });
      }
      failing = result.code !== 0;
      done(result);
    });
  return exporter;
}
