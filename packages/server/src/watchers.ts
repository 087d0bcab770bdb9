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

/** Since when the store does not answer, and what it said. */
interface Outage {
  sinceMs: number | undefined;
  error: string | undefined;
}

const PROBE_EVERY_MS = 5_000;

/**
 * Without traffic nobody would notice that the store is gone. What checks have found, only checks take back: a store that answers a
 * probe may still refuse to write.
 */
function probeWhenIdle(limiter: Limiter, outage: Outage): NodeJS.Timeout {
  let foundAtMs: number | undefined;
  const probe = setInterval(async () => {
    const answers = await limiter.ready();
    if (answers && foundAtMs !== undefined && outage.sinceMs === foundAtMs) outage.sinceMs = undefined;
    if (answers || outage.sinceMs !== undefined) return;
    foundAtMs = Date.now();
    outage.sinceMs = foundAtMs;
    outage.error = describe(limiter.whyNotReady);
  }, PROBE_EVERY_MS);
  return probe.unref();
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

export function startWatchers(options: WatchersOptions): Watchers {
  const { limiter, store, storeKind, settings } = options;
  const outage: Outage = { sinceMs: undefined, error: undefined };
  limiter.on("degraded", (cause) => {
    outage.sinceMs ??= Date.now();
    outage.error = describe(cause);
  });
  limiter.on("recovered", () => {
    outage.sinceMs = undefined;
  });
  const probe = probeWhenIdle(limiter, outage);
  const storeView = createStoreView({
    kind: storeKind,
    nodes: settings.store === "memory" ? undefined : redisNodesOf(settings.store),
    keysInMemory: "size" in store ? () => (store as { size: number }).size : undefined,
    rules: () => limiter.rules,
    state: () => (outage.sinceMs === undefined ? "up" : "degraded"),
    calls: () => callSummary(limiter.storeStats()),
  });
  const alerts = alertsOf(options, storeView, outage);
  alerts?.start();
  return {
    readStore: storeView.read,
    readAlerts: alerts && (() => alerts.read()),
    alertsFiring: () => alerts?.firing() ?? 0,
    async close() {
      clearInterval(probe);
      await alerts?.close();
      storeView.close();
    },
  };
}

function alertsOf(options: WatchersOptions, storeView: StoreWatch, outage: Outage): Alerts | undefined {
  const { settings, limiter, history, monitoring, configuration, log } = options;
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
