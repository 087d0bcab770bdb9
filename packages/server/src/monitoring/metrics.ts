/**
 * What the service tells Prometheus. Labels are bounded: rules, transports and words of ours, never what a client sent.
 * In: the limiter's events, and each transport's times. Out: text for `GET /metrics`.
 */

import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from "prom-client";
import type { Decision, Limiter } from "sluice";
import { DecisionCounts } from "./decision-counts.js";
import { RequestCounts, type Transport } from "./request-counts.js";

export type { Transport } from "./request-counts.js";

export interface Metrics {
  readonly registry: Registry;
  /** One request answered: what it was told, and how long that took. `sinceMs`: performance.now() when it came. */
  answered(transport: Transport, allowed: boolean, sinceMs: number): void;
  /** A reload of Envoy's files, good or bad. */
  envoyReloaded(outcome: "loaded" | "failed"): void;
}

export function createMetrics(limiter: Limiter): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  countDecisions(limiter, registers);
  watchStore(limiter, registers);

  const counts = new RequestCounts();
  for (const metric of [
    counts.requests("sluice_requests_total", "Requests answered, by transport and outcome."),
    counts.latency("sluice_decision_seconds", "From a request's arrival at its transport to its decision."),
  ]) {
    registry.registerMetric(metric as unknown as Metric);
  }
  const reloads = new Counter({
    name: "sluice_envoy_config_reloads_total",
    help: "Reloads of --envoy-config; a failed one keeps the files that were in force.",
    labelNames: ["outcome"],
    registers,
  });
  return {
    registry,
    answered: (transport, allowed, sinceMs) => counts.add(transport, allowed, performance.now() - sinceMs),
    envoyReloaded: (outcome) => reloads.inc({ outcome }),
  };
}

function countDecisions(limiter: Limiter, registers: Registry[]): void {
  const counts = new DecisionCounts();
  const byPolicy = new Counter({
    name: "sluice_degraded_decisions_total",
    help: "Decisions made by a failure policy.",
    labelNames: ["policy"],
    registers,
  });
  limiter.on("decision", ({ checks, degraded }: Decision) => {
    for (let i = 0; i < checks.length; i++) counts.add(checks[i]!);
    if (degraded !== undefined) byPolicy.inc({ policy: degraded });
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
