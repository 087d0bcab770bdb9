/**
 * One instance of the service, put together in four steps: instance, configuration, monitoring, transports.
 * In: settings. Out: addresses, and a way to end it. Signals, workers and the printed screen are `serve.ts`'s.
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
  /** Graceful shutdown: lame duck, then it takes no more connections, answers what is under way, and ends everything. */
  close(options?: CloseOptions): Promise<void>;
}

export interface CloseOptions {
  /** Lame duck: for so long the instance is not ready and still serves, so that load balancers turn away from it first. */
  readonly delayMs: number;
  /** Lame duck beyond that, until a successor can serve. Of one process only. */
  readonly whenServed?: () => Promise<void>;
  /** Another process serves the same ports: this one never says that it is not ready. */
  readonly isReplaced?: boolean;
}

/** What a worker reports of its start. */
export type ServiceSummary = Omit<Service, "close">;

interface ServiceOptions {
  readonly settings: Settings;
  readonly log: Log;
  /** Prometheus text of all workers; absent where there is one. */
  readonly allMetrics?: () => Promise<string>;
  readonly onRegistry?: (registry: Metrics["registry"]) => void;
  /** Absent: not open yet. */
  readonly ports?: Ports | undefined;
  readonly whenTaken?: WhenTaken;
}

/** Where a step fails, the cleanup closes what the steps before it opened: an open connection to Redis would keep the process alive. */
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

/** Rules that a start cannot use are a wrong setting, like every other file that one names; a start with it ends with status 2. */
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
      // While the ports are open: from their close to the end of the process, and on to the next one, an Envoy that fails closed answers 500.
      await monitoring.endWatching();
      await cleanup.close();
    },
  };
}
