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

/** What the configuration layer has and lacks, as `/readyz` tells it too. */
export interface ConfigurationHealth {
  readonly loaded: boolean;
  readonly database: "up" | "down" | "none";
  readonly cache: "up" | "down" | "none";
  readonly propagationMs?: number;
}

export function createMetrics(limiter: Limiter, configuration: () => ConfigurationHealth): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  countDecisions(limiter, registers);
  watchStore(limiter, registers);
  watchConfiguration(configuration, registers);

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

function watchConfiguration(configuration: () => ConfigurationHealth, registers: Registry[]): void {
  new Gauge({
    name: "sluice_configuration_up",
    help: "1 where the part of the configuration layer can be reached, 0 where it cannot; parts that are not in use are absent.",
    labelNames: ["part"],
    registers,
    collect() {
      const { database, cache } = configuration();
      this.reset();
      for (const [part, state] of Object.entries({ database, cache }))
        if (state !== "none") this.set({ part }, state === "up" ? 1 : 0);
    },
  });
  new Gauge({
    name: "sluice_rules_loaded",
    help: "0 while no rules could be read from anywhere, and nothing is limited.",
    registers,
    collect() {
      this.set(configuration().loaded ? 1 : 0);
    },
  });
  new Gauge({
    name: "sluice_rules_propagation_seconds",
    help: "From the commit of the last change of rules to its being in force here.",
    registers,
    collect() {
      const { propagationMs } = configuration();
      if (propagationMs !== undefined) this.set(propagationMs / 1_000);
    },
  });
}
