/**
 * One instance of the service, assembled in four steps: instance, configuration, monitoring, transports.
 * In: settings. Out: addresses, and a way to close it. Signals, workers and the start screen are `serve.ts`'s job.
 */
import { type Rule, SluiceError } from "sluice";
import { AlertPolicies } from "../configuration/alert-policies.js";
import { Cleanup } from "../instance/cleanup.js";
import { openInstance } from "../instance/instance.js";
import type { Log } from "../log.js";
import type { Metrics } from "../monitoring/metrics.js";
import { startMonitoring } from "../monitoring/monitoring.js";
import type { Settings } from "../settings/settings.js";
import { checkEnvoyFolder } from "./envoy-settings.js";
import { openConfiguration } from "./open-configuration.js";
import { openPorts, type Ports, type WhenTaken } from "./open-ports.js";
import { openTransports } from "./open-transports.js";

export interface Service {
  readonly http: string;
  readonly grpc: string;
  readonly proxy: string | undefined;
  readonly adminTokenFile: string | undefined;
  readonly rules: readonly Rule[];
  readonly rulesVersion: number;
  /** Graceful shutdown: lame duck, stop accepting connections, answer requests in flight, close everything. */
  close(options?: CloseOptions): Promise<void>;
}

export interface CloseOptions {
  /** Lame-duck period: the instance is not ready but still serves, so that load balancers drain it first. */
  readonly delayMs: number;
  /** Extends the lame-duck period until a successor can serve. Single process only. */
  readonly whenServed?: () => Promise<void>;
  /** Another process serves the same ports: this one never reports that it is not ready. */
  readonly isReplaced?: boolean;
}

/** What a worker reports about its start. */
export type ServiceSummary = Omit<Service, "close">;

interface ServiceOptions {
  readonly settings: Settings;
  readonly log: Log;
  /** Prometheus text of all workers; absent with a single process. */
  readonly allMetrics?: () => Promise<string>;
  readonly onRegistry?: (registry: Metrics["registry"]) => void;
  /** Absent: not opened yet. */
  readonly ports?: Ports | undefined;
  readonly whenTaken?: WhenTaken;
}

/** If a step fails, the cleanup closes what earlier steps opened: an open Redis connection would keep the process alive. */
export async function startService(options: ServiceOptions): Promise<Service> {
  checkEnvoyFolder(options.settings);
  const cleanup = new Cleanup();
  try {
    return await start(options, cleanup);
  } catch (error) {
    await cleanup.close();
    throw asSetting(error, options.settings);
  }
}

/** Unusable rules count as an invalid setting, like any other file named by a setting: the process exits with status 2. */
function asSetting(error: unknown, { rules: file, "global-store": globalStore }: Settings): unknown {
  if (!(error instanceof SluiceError) || error.code !== "invalid-rules") return error;
  const lacksStore = globalStore === undefined && error.mistakes?.every(({ path }) => path.endsWith(".scope"));
  const where = file === undefined ? "of the database" : `in ${file}`;
  const words = lacksStore
    ? `global-store: expected the Redis that all regions share, for the rules with scope global ${where}, got nothing`
    : `rules: expected a document without mistakes ${where}, got`;
  return new SluiceError("invalid-setting", `${words}\n${error.message}`);
}

async function start(options: ServiceOptions, cleanup: Cleanup): Promise<Service> {
  const instance = await openInstance(options, cleanup);
  const { configuration, rules } = await openConfiguration(instance, cleanup);
  const alertPolicies = new AlertPolicies(configuration.repository?.alerts, instance.log);
  const monitoring = await startMonitoring({ instance, configuration, alertPolicies }, cleanup);
  const { registry } = monitoring.metrics;
  options.onRegistry?.(registry);
  const metricsText = options.allMetrics ?? (() => registry.metrics());
  const ports = options.ports ?? (await openPorts(options.settings, undefined, options.whenTaken));
  const transports = await openTransports(
    { instance, configuration, alertPolicies, rules, monitoring, metricsText, ports },
    cleanup,
  );
  const { http, grpc, proxy, adminTokenFile } = transports;
  const { limiter } = instance;
  return {
    http,
    grpc,
    proxy,
    adminTokenFile,
    get rules() {
      return limiter.rules;
    },
    get rulesVersion() {
      return limiter.rulesVersion;
    },
    async close(how = { delayMs: 0 }) {
      await transports.turnAway(how);
      // Ends the alert and region watches while the ports are still open: an alert round may take a while, and from the close of the ports
      // until the next process serves, an Envoy that fails closed answers 500.
      await monitoring.endWatching();
      await cleanup.close();
    },
  };
}
