/**
 * What watches beside the path of requests, put together from the settings: the store's view, and alerts.
 * In: the limiter, its store, the history. Out: what the admin API reads. Nothing here is waited for by a check.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Limiter, Store } from "sluice";
import type { ConfigurationStatus } from "./configuration/configuration.js";
import type { Log } from "./log.js";
import { Alerts } from "./monitoring/alerts/alerts.js";
import type { History } from "./monitoring/history/history.js";
import type { Monitoring } from "./monitoring/monitoring.js";
import type { StoreOutage } from "./monitoring/store-outage.js";
import { callSummary } from "./monitoring/store-view/call-summary.js";
import { redisNodesOf } from "./monitoring/store-view/redis-nodes.js";
import { createStoreView, type StoreWatch } from "./monitoring/store-view/store-view.js";
import type { AlertsView, StoreView } from "./monitoring/views.js";
import type { Settings } from "./settings.js";

export interface WatchersOptions {
  readonly settings: Settings;
  readonly limiter: Limiter;
  readonly store: Store;
  readonly storeKind: string;
  readonly outage: StoreOutage;
  readonly configuration: () => ConfigurationStatus;
  /** Both absent where monitoring is off: then nothing is detected. */
  readonly history: History | undefined;
  readonly monitoring: () => Monitoring | undefined;
  readonly log: Log;
}

export interface Watchers {
  readStore(): Promise<StoreView>;
  /** Absent where monitoring is off. */
  readonly readAlerts: (() => Promise<AlertsView>) | undefined;
  alertsFiring(): number;
  /** Before the history is closed. */
  close(): Promise<void>;
}

export function startWatchers(options: WatchersOptions): Watchers {
  const { limiter, store, storeKind, settings, outage } = options;
  const storeView = createStoreView({
    kind: storeKind,
    nodes: settings.store === "memory" ? undefined : redisNodesOf(settings.store),
    keysInMemory: "size" in store ? () => (store as { size: number }).size : undefined,
    findRule: (id) => limiter.findRule(id),
    outage: () => outage.view(),
    calls: () => callSummary(limiter.storeStats()),
  });
  const alerts = alertsOf(options, storeView);
  alerts?.start();
  return {
    readStore: storeView.read,
    readAlerts: alerts && (() => alerts.read()),
    alertsFiring: () => alerts?.firing() ?? 0,
    async close() {
      await alerts?.close();
      storeView.close();
    },
  };
}

function alertsOf(options: WatchersOptions, storeView: StoreWatch): Alerts | undefined {
  const { settings, limiter, history, monitoring, configuration, outage, log } = options;
  if (history === undefined) return undefined;
  return new Alerts({
    history,
    log,
    instance: `${hostname()}-${process.pid}-${randomBytes(3).toString("hex")}`,
    webhooks: settings["alert-webhook"] ?? [],
    secret: settings["alert-secret"],
    allowPrivate: settings["alert-allow-private"],
    nodes: storeView.nodes,
    topKeys: async () =>
      (await monitoring()?.readTopKeys({ window: "hour", by: "traffic", limit: 50 })) ?? { maxError: 0, keys: [] },
    state: () => {
      const { loaded, lastError, database } = configuration();
      return {
        // Rules from a file are counted by each instance for itself: the same rules may be its first version and another's fifth.
        rulesVersion: database === "none" ? undefined : limiter.rulesVersion,
        rulesLoaded: loaded,
        configurationError: lastError,
        storeDegradedSinceMs: outage.sinceMs,
        storeError: outage.error,
      };
    },
  });
}
