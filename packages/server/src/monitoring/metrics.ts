/**
 * What the service tells Prometheus. Labels are bounded: rules, transports and words of ours, never what a client sent.
 * In: the limiter's events, and each transport's times. Out: text for `GET /metrics`.
 */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Decision, Limiter } from "sluice";
import { DecisionCounts } from "./decision-counts.js";

export type Transport = "http" | "grpc" | "forward-auth" | "proxy";
const transports: readonly Transport[] = ["http", "grpc", "forward-auth", "proxy"];

export interface Metrics {
  readonly registry: Registry;
  /** One request answered: what it was told, and how long that took. `sinceMs`: performance.now() when it came. */
  answered(transport: Transport, allowed: boolean, sinceMs: number): void;
  /** A reload of Envoy's files, good or bad. */
  envoyReloaded(outcome: "loaded" | "failed"): void;
}

/** From 50 us, where a memory store answers, to beyond any store deadline. */
const LATENCY_BUCKETS_S = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1];

export function createMetrics(limiter: Limiter): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  countChecks(limiter, registers);
  watchStore(limiter, registers);

  const requests = new Counter({
    name: "sluice_requests_total",
    help: "Requests answered, by transport and outcome.",
    labelNames: ["transport", "outcome"],
    registers,
  });
  const latency = new Histogram({
    name: "sluice_decision_seconds",
    help: "From a request's arrival at its transport to its decision.",
    labelNames: ["transport"],
    buckets: LATENCY_BUCKETS_S,
    registers,
  });
  const reloads = new Counter({
    name: "sluice_envoy_config_reloads_total",
    help: "Reloads of --envoy-config; a failed one keeps the files that were in force.",
    labelNames: ["outcome"],
    registers,
  });
  // Looked up once: resolving labels costs more than counting.
  const byTransport = new Map(
    transports.map((transport) => [
      transport,
      {
        allowed: requests.labels({ transport, outcome: "allowed" }),
        refused: requests.labels({ transport, outcome: "refused" }),
        latency: latency.labels({ transport }),
      },
    ]),
  );
  return {
    registry,
    answered(transport, allowed, sinceMs) {
      const counters = byTransport.get(transport)!;
      (allowed ? counters.allowed : counters.refused).inc();
      counters.latency.observe((performance.now() - sinceMs) / 1000);
    },
    envoyReloaded: (outcome) => reloads.inc({ outcome }),
  };
}

function countChecks(limiter: Limiter, registers: Registry[]): void {
  const counts = new DecisionCounts();
  limiter.on("decision", (decision: Decision) => {
    const { checks } = decision;
    for (let i = 0; i < checks.length; i++) counts.add(checks[i]!);
  });
  new Counter({
    name: "sluice_checks_total",
    help: "Checks decided, by rule, mode, outcome and reason.",
    labelNames: ["rule", "mode", "outcome", "reason"],
    registers,
    collect() {
      this.reset();
      for (const { count, ...labels } of counts.read()) this.inc(labels, count);
    },
  });
}

function watchStore(limiter: Limiter, registers: Registry[]): void {
  const degraded = new Gauge({
    name: "sluice_store_degraded",
    help: "1 while the store does not answer and the rules' failure policies do.",
    registers,
  });
  limiter.on("degraded", () => degraded.set(1));
  limiter.on("recovered", () => degraded.set(0));
  const degradedDecisions = new Counter({
    name: "sluice_degraded_decisions_total",
    help: "Decisions made by a failure policy.",
    labelNames: ["policy"],
    registers,
  });
  limiter.on("decision", (decision: Decision) => {
    if (decision.degraded !== undefined) degradedDecisions.inc({ policy: decision.degraded });
  });
  new Gauge({
    name: "sluice_rules_version",
    help: "Version of the rules in force.",
    registers,
    collect() {
      this.set(limiter.rulesVersion);
    },
  });
  new Gauge({
    name: "sluice_rules",
    help: "Rules in force, those of Envoy's files included.",
    registers,
    collect() {
      this.set(limiter.rules.length);
    },
  });
}
