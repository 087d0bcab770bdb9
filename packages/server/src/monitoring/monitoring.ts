/**
 * Step 3 of the start: monitoring. Off the request path, it counts, records, detects and displays; no check waits for it.
 *
 *   always               metrics, the request observer, the store view, OTLP if configured
 *   --monitoring on      also the history, this instance's heartbeat, figures, alerts
 */
import type { Rule } from "sluice";
import type { AlertPolicies } from "../configuration/alert-policies.js";
import type { ConfigurationStatus } from "../configuration/configuration.js";
import type { Cleanup } from "../instance/cleanup.js";
import { Heartbeat } from "../instance/heartbeat.js";
import type { Fleet, Instance } from "../instance/instance.js";
import { storeTls } from "../instance/store-tls.js";
import { packageVersion } from "../own-package.js";
import type { Settings } from "../settings/settings.js";
import { Alerts } from "./alerts/alerts.js";
import type { SmtpOptions } from "./alerts/mail.js";
import { type Figures, startFigures } from "./figures.js";
import type { History } from "./history/history.js";
import { openHistory, openOwnHistory } from "./history/open-history.js";
import { createMetrics, type Metrics } from "./metrics.js";
import { type Observe, observeRequests } from "./observe-requests.js";
import type { Otlp } from "./otlp/otlp.js";
import { type RegionWatch, startRegionWatch } from "./regions/region-watch.js";
import type { ModelUse } from "./spend/model-spend.js";
import { callSummary } from "./store-view/call-summary.js";
import type { RedisNodes } from "./store-view/redis-nodes.js";
import { createStoreView, type StoreWatch } from "./store-view/store-view.js";
import { TopKeysReader } from "./top-keys/read-top-keys.js";
import { observeTraffic, type Traffic } from "./traffic.js";
import type { BlockedKeysView } from "./views/keys.js";
import type { RegionsView } from "./views/regions.js";
import type { StoreView } from "./views/store.js";

export interface Monitoring {
  readonly metrics: Metrics;
  readonly observe: Observe;
  readStore(): Promise<StoreView>;
  readBlockedKeys(rule?: string): Promise<BlockedKeysView>;
  /** All absent with monitoring off. */
  readonly figures: Figures | undefined;
  readonly readRegions: (() => Promise<RegionsView>) | undefined;
  readonly alerts: Pick<Alerts, "read" | "acknowledge" | "test"> | undefined;
  /** Ends the watches of alerts and regions, which may take an alert round: requests are still answered meanwhile. */
  endWatching(): Promise<void>;
  /** Counts a finished model call; absent with monitoring off. */
  readonly noteModel: ((used: ModelUse) => void) | undefined;
}

interface Sources {
  readonly instance: Instance;
  readonly configuration: { status(): ConfigurationStatus };
  readonly alertPolicies: Pick<AlertPolicies, "inForce">;
}

export async function startMonitoring(sources: Sources, cleanup: Cleanup): Promise<Monitoring> {
  const { instance, configuration } = sources;
  const { limiter, health, fleet } = instance;
  const history = fleet && (await openHistory({ fleet, instance }));
  cleanup.add(() => history?.close());
  const traffic = observeTraffic(limiter, {
    isCounted: fleet !== undefined,
    refusalValues: instance.settings["refusal-log"],
  });
  const metrics = createMetrics({
    limiter,
    traffic,
    health,
    configuration: () => configuration.status(),
    lostWrites: history && (() => history.lost),
    recorded: instance.recording?.counts,
  });
  const otlp = await openOtlp(instance, metrics);
  cleanup.add(() => otlp?.close());
  const observe = observeRequests({ requests: traffic.isCounted ? traffic.requests : undefined, trace: otlp?.trace });
  const storeView = openStoreView(instance, await nodesOf(instance));
  cleanup.add(() => storeView.close());
  const counted =
    fleet && history && (await startCounting({ ...sources, fleet, history, traffic, storeView }, cleanup));
  return {
    metrics,
    observe,
    readStore: storeView.read,
    readBlockedKeys: storeView.blockedKeys,
    figures: counted?.figures,
    readRegions: counted?.readRegions,
    alerts: counted?.alerts,
    endWatching: async () => counted?.endWatching(),
    noteModel: counted && ((used) => traffic.models.add(used)),
  };
}

/** Parts that exist only with monitoring on. */
async function startCounting(
  sources: Sources & { fleet: Fleet; history: History; traffic: Traffic; storeView: StoreWatch },
  cleanup: Cleanup,
): Promise<Pick<Monitoring, "alerts" | "readRegions" | "endWatching"> & { figures: Figures }> {
  const { instance, fleet, history, traffic, storeView, alertPolicies } = sources;
  const { settings, log, limiter, health, storeKind } = instance;
  const { shared } = fleet;
  const heartbeat = heartbeatOf(sources);
  heartbeat.start();
  cleanup.add(() => heartbeat.close());
  const topKeys = new TopKeysReader(shared, traffic.topKeys);
  const alerts = new Alerts({
    history,
    shared,
    log,
    instance: instance.id,
    heartbeat,
    storeHealth: health,
    webhooks: settings["alert-webhook"] ?? [],
    secret: settings["alert-secret"],
    allowPrivate: settings["alert-allow-private"],
    nodes: storeView.nodes,
    topKeys: () => topKeys.read({ window: "hour", by: "traffic", limit: 50 }),
    policy: () => alertPolicies.inForce(),
    tagsOf: (rule) => tagsOf(limiter.findRule(rule)),
    tagged: (tag) => limiter.rules.filter((rule) => tagsOf(rule).includes(tag)).map(({ id }) => id),
    smtp: smtpOf(settings),
    consoleUrl: settings["public-url"],
  });
  const own = await openOwnHistory({ fleet, instance });
  const figures = startFigures({
    limiter,
    traffic,
    history,
    own,
    shared,
    instance: instance.id,
    heartbeat,
    health,
    topKeys,
    log,
    storeKind,
    alertsFiring: () => alerts.firing(),
  });
  cleanup.add(() => figures.close());
  alerts.start();
  const regions = watchRegions(sources);
  let ended: Promise<unknown> | undefined;
  const endWatching = async (): Promise<void> => {
    ended ??= Promise.all([alerts.close(), regions?.close()]);
    await ended;
  };
  cleanup.add(endWatching);
  const none = (): RegionsView => ({ atMs: Date.now(), scope: "all", regions: [] });
  return {
    figures,
    readRegions: () => regions?.read() ?? Promise.resolve(none()),
    alerts,
    endWatching,
  };
}

function tagsOf(rule: Rule | undefined): readonly string[] {
  return rule?.tags ?? [];
}

function smtpOf({ "smtp-url": url, "smtp-from": from }: Settings): SmtpOptions | undefined {
  return url === undefined || from === undefined ? undefined : { url, from };
}

function watchRegions({
  instance,
  fleet,
  traffic,
}: Sources & { fleet: Fleet; traffic: Traffic }): RegionWatch | undefined {
  if (fleet.home === undefined) return undefined;
  const { id, limiter } = instance;
  return startRegionWatch({ limiter, traffic, instance: id, shared: fleet.shared, home: fleet.home });
}

function heartbeatOf({ instance, configuration, fleet }: Sources & { fleet: Fleet }): Heartbeat {
  const { limiter, health } = instance;
  return new Heartbeat({
    shared: fleet.shared,
    instance: instance.id,
    state: () => {
      const { loaded, lastError, database } = configuration.status();
      const { rulesVersion } = limiter;
      return {
        // A partial outage is not reported: one late answer somewhere in a fleet deserves no alert.
        store: health.failingSinceMs === undefined ? "up" : "degraded",
        rulesVersion,
        // Versions from a rules file are local to an instance: the same rules may be one's first version and another's fifth.
        sharedVersion: database === "none" ? undefined : rulesVersion,
        rulesLoaded: loaded,
        configurationError: lastError,
      };
    },
  });
}

/** Loaded only with Redis. */
async function nodesOf({ settings }: Instance): Promise<RedisNodes | undefined> {
  if (settings.store === "memory") return undefined;
  const { redisNodesOf } = await import("./store-view/redis-nodes.js");
  return redisNodesOf(settings.store, storeTls(settings));
}

function openStoreView(
  { settings, store, storeKind, limiter, health }: Instance,
  nodes: RedisNodes | undefined,
): StoreWatch {
  return createStoreView({
    kind: storeKind,
    nodes,
    prefix: settings["store-prefix"],
    keysInMemory: "size" in store ? () => (store as { size: number }).size : undefined,
    blocksInMemory: (rule) => limiter.blocksInMemory(rule) ?? [],
    findRule: (id) => limiter.findRule(id),
    outage: () => health.view(),
    calls: () => callSummary(limiter.storeStats()),
  });
}

async function openOtlp({ settings, log, id }: Instance, { registry }: Metrics): Promise<Otlp | undefined> {
  if (settings.otlp === undefined) return undefined;
  // Loaded only here: its libraries are larger than the rest of the service.
  const { startOtlp } = await import("./otlp/otlp.js");
  const traceShare = settings["trace-share"];
  return startOtlp({ url: settings.otlp, registry, traceShare, version: packageVersion(), log, instance: id });
}
