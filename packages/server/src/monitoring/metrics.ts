/**
 * The service's metrics. Label cardinality is bounded: rules, transports and fixed words, never client data.
 * In: the counts of `traffic.ts`, the limiter and the configuration. Out: text for `GET /metrics`. `docs/metrics.md` lists the same.
 */
import { performance } from "node:perf_hooks";
import { Counter, collectDefaultMetrics, type Metric, Registry } from "prom-client";
import type { Limiter } from "sluice";
import type { StoreHealth } from "../instance/store-health.js";
import { adaptiveMetrics } from "./adaptive-metrics.js";
import { prefetchMetrics } from "./prefetch-metrics.js";
import { type ReadableCounter, type ReadableMetric, readableMetric, type Sample } from "./readable-metric.js";
import { regionMetrics } from "./region-metrics.js";
import { reservationMetrics } from "./reservation-metrics.js";
import { sheddingMetrics } from "./shedding-metrics.js";
import { storeMetrics } from "./store-metrics.js";
import type { Traffic } from "./traffic.js";
import { waitingMetrics } from "./waiting-metrics.js";

export interface Metrics {
  readonly registry: Registry;
  /** Envoy's files were reloaded, successfully or not. */
  envoyReloaded(outcome: "loaded" | "failed"): void;
  /** A wrong token, session or API token. */
  authenticationFailed(labels: { plane: string; credential: string }): void;
  /** Envoy gave back a lease or negative hits. */
  envoyGaveBack(outcome: "released" | "unknown" | "given-back" | "ignored" | "abandoned"): void;
  /** The outcome of a quota bucket report. */
  envoyQuota(outcome: string): void;
  /** Registers the source for the numbers of open quota streams and buckets. */
  readQuotas(read: () => { streams: number; buckets: number }): void;
  /** Whether the control plane stream is connected. */
  envoyConnected(connected: boolean): void;
  addCounters(counters: readonly ReadableCounter[]): void;
}

/** The configuration layer's state, as `/readyz` reports it too. */
interface ConfigurationHealth {
  readonly loaded: boolean;
  readonly database: "up" | "down" | "none";
  readonly cache: "up" | "down" | "none";
  readonly propagationMs?: number;
}

interface MetricsOptions {
  readonly limiter: Limiter;
  readonly traffic: Traffic;
  readonly health: Pick<StoreHealth, "state">;
  readonly configuration: () => ConfigurationHealth;
  /** Lost writes to the history; absent without a history. */
  readonly lostWrites?: (() => number) | undefined;
  /** Absent without --record. */
  readonly recorded?: Recorded | undefined;
}

/** The counts of a recording. */
interface Recorded {
  readonly lines: number;
  readonly dropped: number;
  readonly bytes: number;
  readonly failures: number;
}

export function createMetrics(options: MetricsOptions): Metrics {
  const { limiter, traffic, health, configuration, lostWrites, recorded } = options;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const reloads = new Counter({
    name: "sluice_envoy_config_reloads_total",
    help: "Limits read from --envoy-config or received from --envoy-xds; failed ones leave those in force.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  const failedAuthentications = new Counter({
    name: "sluice_authentication_failures_total",
    help: "Requests with a wrong credential (bearer, session, sign-in), by plane (admin, data).",
    labelNames: ["plane", "credential"],
    registers: [registry],
  });
  const givenBack = new Counter({
    name: "sluice_envoy_given_back_total",
    help: "Returns by Envoy: leases (released, unknown, or abandoned by a caller that left before its answer) and negative hits (given-back, or ignored where the limit takes none).",
    labelNames: ["outcome"],
    registers: [registry],
  });
  const quotaReports = new Counter({
    name: "sluice_envoy_quota_assignments_total",
    help: "Buckets of Envoy's quota (RLQS), reported or renewed: units, extended, denied, unlimited, none (no rule fits), failed (no store), abandoned (idle), refused (out of bounds).",
    labelNames: ["outcome"],
    registers: [registry],
  });
  let quotas: (() => { streams: number; buckets: number }) | undefined;
  let connected: number | undefined;
  const ours: readonly ReadableMetric[] = [
    ...trafficMetrics(traffic),
    ...limiterMetrics(limiter, health),
    ...[sheddingMetrics, waitingMetrics, adaptiveMetrics, prefetchMetrics, regionMetrics].flatMap((of) => of(limiter)),
    ...reservationMetrics(limiter),
    ...storeMetrics(limiter),
    ...configurationMetrics(configuration),
    ...(lostWrites === undefined ? [] : [historyMetric(lostWrites)]),
    ...(recorded === undefined ? [] : recordingMetrics(recorded)),
    eventLoopMetric(),
    ...(["streams", "buckets"] as const).map((what) =>
      readableMetric(
        {
          name: `sluice_envoy_quota_${what}`,
          help: `Open ${what} of Envoy's quota service (RLQS); absent with --envoy-rlqs false.`,
          type: "gauge",
        },
        () => (quotas === undefined ? [] : one(quotas()[what])),
      ),
    ),
    readableMetric(
      {
        name: "sluice_envoy_xds_connected",
        help: "1 while the control plane of --envoy-xds sends limits, 0 while it does not; absent without one.",
        type: "gauge",
        aggregator: "min",
      },
      () => (connected === undefined ? [] : one(connected)),
    ),
  ];
  for (const metric of ours) registry.registerMetric(metric as unknown as Metric);
  return {
    registry,
    envoyReloaded: (outcome) => reloads.inc({ outcome }),
    authenticationFailed: (labels) => failedAuthentications.inc(labels),
    envoyGaveBack: (outcome) => givenBack.inc({ outcome }),
    envoyQuota: (outcome) => quotaReports.inc({ outcome }),
    readQuotas(read) {
      quotas = read;
    },
    addCounters(counters) {
      for (const { name, help, read } of counters)
        registry.registerMetric(readableMetric({ name, help, type: "counter" }, read) as unknown as Metric);
    },
    envoyConnected(now) {
      connected = now ? 1 : 0;
    },
  };
}

const one = (value: number): Sample[] => [{ value, labels: {} }];

function trafficMetrics({ decisions, requests, leases }: Traffic): ReadableMetric[] {
  return [
    requests.requests("sluice_requests_total", "Requests answered, by transport and outcome."),
    requests.unmatched("sluice_requests_unmatched_total", "Requests that no rule applied to: nothing limited them."),
    requests.latency("sluice_decision_seconds", "From a request's arrival at its transport to its decision."),
    readableMetric(
      {
        name: "sluice_checks_total",
        help: "Checks decided, by rule, mode, outcome, reason and, where the rule has them, variant.",
        type: "counter",
      },
      () =>
        Array.from(decisions.read(), ({ rule, mode, outcome, reason, variant, count }) => ({
          value: count,
          labels: { rule, mode, outcome, reason, ...(variant !== "" && { variant }) },
        })),
    ),
    readableMetric(
      { name: "sluice_degraded_decisions_total", help: "Decisions made by a failure policy.", type: "counter" },
      () => Object.entries(decisions.requests.degraded).map(([policy, value]) => ({ value, labels: { policy } })),
    ),
    readableMetric(
      {
        name: "sluice_leases_held",
        help: "Leases that this instance granted and that were neither released here nor have ended, by rule.",
        type: "gauge",
      },
      () => Array.from(leases.read(), ([rule, value]) => ({ value, labels: { rule } })),
    ),
  ];
}

function limiterMetrics(limiter: Limiter, health: Pick<StoreHealth, "state">): ReadableMetric[] {
  return [
    readableMetric(
      {
        name: "sluice_store_degraded",
        help: "1 while the store does not answer and the rules' failure policies do.",
        type: "gauge",
        aggregator: "max",
      },
      () => one(health.state === "degraded" ? 1 : 0),
    ),
    readableMetric(
      { name: "sluice_rules_version", help: "Version of the rules in force.", type: "gauge", aggregator: "min" },
      () => one(limiter.rulesVersion),
    ),
    readableMetric(
      {
        name: "sluice_rules",
        help: "Rules in force, those of Envoy's files included.",
        type: "gauge",
        aggregator: "max",
      },
      () => one(limiter.rules.length),
    ),
  ];
}

function configurationMetrics(configuration: () => ConfigurationHealth): ReadableMetric[] {
  return [
    readableMetric(
      {
        name: "sluice_configuration_up",
        help: "1 where the part of the configuration layer can be reached, 0 where it cannot; parts that are not in use are absent.",
        type: "gauge",
        aggregator: "min",
      },
      () => {
        const { database, cache } = configuration();
        return Object.entries({ database, cache })
          .filter(([, state]) => state !== "none")
          .map(([part, state]) => ({ value: state === "up" ? 1 : 0, labels: { part } }));
      },
    ),
    readableMetric(
      {
        name: "sluice_rules_loaded",
        help: "0 while no rules could be read from anywhere, and nothing is limited.",
        type: "gauge",
        aggregator: "min",
      },
      () => one(configuration().loaded ? 1 : 0),
    ),
    readableMetric(
      {
        name: "sluice_rules_propagation_seconds",
        help: "From the commit of the last change of rules to its being in force here.",
        type: "gauge",
        aggregator: "max",
      },
      () => {
        const { propagationMs } = configuration();
        return propagationMs === undefined ? [] : one(propagationMs / 1_000);
      },
    ),
  ];
}

function historyMetric(lostWrites: () => number): ReadableMetric {
  return readableMetric(
    {
      name: "sluice_history_lost_writes_total",
      help: "Writes of counts to the history that failed: what it shows is too low.",
      type: "counter",
    },
    () => one(lostWrites()),
  );
}

function recordingMetrics(recorded: Recorded): ReadableMetric[] {
  const counter = (name: string, help: string, read: () => number): ReadableMetric =>
    readableMetric({ name, help, type: "counter" }, () => one(read()));
  return [
    counter("sluice_recording_lines_total", "Lines that --record has written.", () => recorded.lines),
    counter(
      "sluice_recording_dropped_lines_total",
      "Lines that --record lost: the disk was too slow, full or gone.",
      () => recorded.dropped,
    ),
    counter("sluice_recording_bytes_total", "Bytes that --record has written, compressed.", () => recorded.bytes),
    counter(
      "sluice_recording_failures_total",
      "Segments of --record that could not be written.",
      () => recorded.failures,
    ),
  ];
}

/** Since the last scrape, so that each scrape gets its own interval's utilisation. */
function eventLoopMetric(): ReadableMetric {
  let before = performance.eventLoopUtilization();
  return readableMetric(
    {
      name: "sluice_event_loop_utilisation",
      help: "Share of the time since the last scrape in which the event loop worked; of the busiest worker.",
      type: "gauge",
      aggregator: "max",
    },
    () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      return one(utilization);
    },
  );
}
