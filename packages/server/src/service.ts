/**
 * One instance of the service, put together: store, rules, limiter, and each transport in front of it.
 * In: settings. Out: addresses, and a way to end it. Signals, workers and the printed screen are `serve.ts`'s.
 */
import { randomUUID } from "node:crypto";
import type { Server } from "node:http";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Limiter, memoryStore, type Rule, type Store } from "sluice";
import { redisStore } from "sluice/redis";
import { untilQueueIsEmpty } from "./accept-queue.js";
import {
  dashboardFolder,
  openTokens,
  registerAdministration,
  registerDashboard,
} from "./administration/administration.js";
import { type Configuration, startConfiguration } from "./configuration/configuration.js";
import { holdFolder, makeFolder } from "./data-folder.js";
import { drain } from "./drain.js";
import { requestAttributes } from "./enforcement/attributes/request-attributes.js";
import { startEnvoy } from "./enforcement/envoy/envoy.js";
import { createGrpcServer } from "./enforcement/envoy/grpc-server.js";
import { registerEnvoyJson } from "./enforcement/envoy/json-route.js";
import { registerForwardAuth } from "./enforcement/forward-auth/forward-auth.js";
import { tokenGuard } from "./enforcement/http/api-token.js";
import { registerDataPlane } from "./enforcement/http/data-plane.js";
import { createFastCheck } from "./enforcement/http/fast-check.js";
import { registerHealthRoutes } from "./enforcement/http/health-routes.js";
import { createProxy } from "./enforcement/proxy/proxy.js";
import { RulesInForce } from "./enforcement/rules-in-force.js";
import { checkEnvoyFolder, envoyAnswers, envoyCounts, envoyFolder, hasOwnLimits, xdsOf } from "./envoy-settings.js";
import { createEdge } from "./http/edge.js";
import { createMetricsListener } from "./http/metrics-listener.js";
import { listen } from "./listen.js";
import type { Log } from "./log.js";
import { openHistory, openOwnHistory } from "./monitoring/history/open-history.js";
import { createMetrics, type Metrics } from "./monitoring/metrics.js";
import { startMonitoring } from "./monitoring/monitoring.js";
import { observeRequests } from "./monitoring/observe-requests.js";
import type { Otlp } from "./monitoring/otlp/otlp.js";
import { StoreOutage } from "./monitoring/store-outage.js";
import { observeTraffic } from "./monitoring/traffic.js";
import { factsOf, noteFailures } from "./note-failures.js";
import { isLoopback, ownHosts } from "./own-hosts.js";
import { packageVersion } from "./own-package.js";
import type { Settings } from "./settings.js";
import { isStarterRule, starterRules } from "./starter-rules.js";
import { TlsFiles } from "./tls-files.js";
import { startWatchers } from "./watchers.js";

export interface Service {
  readonly http: string;
  readonly grpc: string;
  readonly proxy: string | undefined;
  readonly adminTokenFile: string | undefined;
  readonly rules: readonly Rule[];
  readonly rulesVersion: number;
  /**
   * Lame duck: for `delayMs` the instance is not ready and still serves, so that load balancers turn away from it first. Then, when `mayClose`
   * resolves, it takes no more connections, answers what is under way, and ends everything.
   */
  close(options?: { delayMs: number; mayClose?: () => Promise<void> }): Promise<void>;
}

export interface ServiceOptions {
  readonly settings: Settings;
  readonly log: Log;
  /** Prometheus text of all workers; absent where there is one. */
  readonly allMetrics?: () => Promise<string>;
  readonly onRegistry?: (registry: Metrics["registry"]) => void;
}

/** What was opened is closed again where a later step fails: an open connection to Redis would keep the process alive. */
export async function startService(options: ServiceOptions): Promise<Service> {
  checkEnvoyFolder(options.settings);
  const opened: (() => unknown)[] = [];
  try {
    return await putTogether(options, opened);
  } catch (error) {
    for (const close of opened.reverse()) await close();
    throw error;
  }
}

async function putTogether(
  { settings, log, allMetrics, onRegistry }: ServiceOptions,
  opened: (() => unknown)[],
): Promise<Service> {
  const lock = openFolders(settings);
  opened.push(() => lock?.release());
  const store = storeOf(settings, log);
  const limiter = createLimiter({
    rules: [],
    store,
    ...(settings.instances !== undefined && { instances: settings.instances * settings.workers }),
  });
  limiter.on("degraded", (cause) =>
    log.warn("the store does not answer; failure policies do", { cause: String(cause) }),
  );
  limiter.on("recovered", () => log.info("the store answers again"));
  opened.push(() => limiter.close());
  const rules = new RulesInForce(limiter);
  const configuration = await openConfiguration({ settings, log, limiter, rules });
  opened.push(() => configuration.close());
  const history =
    settings.monitoring === "off"
      ? undefined
      : await openHistory({ store: settings.store, dataFolder: settings["data-folder"], log });
  opened.push(() => history?.close());
  const own = history && (await openOwnHistory({ store: settings.store, log }));
  const outage = new StoreOutage(limiter);
  opened.push(() => outage.close());
  const traffic = observeTraffic(limiter, { isCounted: history !== undefined });
  const metrics = createMetrics({
    limiter,
    traffic,
    configuration: () => configuration.status(),
    lostWrites: history && (() => history.lost),
  });
  onRegistry?.(metrics.registry);
  const otlp = settings.otlp === undefined ? undefined : await openOtlp(settings.otlp, { settings, metrics, log });
  opened.push(() => otlp?.close());
  const observe = observeRequests({ requests: traffic.isCounted ? traffic.requests : undefined, trace: otlp?.trace });
  const kind = storeKind(settings.store);
  const watchers = startWatchers({
    settings,
    limiter,
    store,
    storeKind: kind,
    outage,
    configuration: () => configuration.status(),
    history,
    monitoring: () => monitoring,
    log,
  });
  const monitoring =
    history &&
    startMonitoring({
      limiter,
      traffic,
      history,
      own,
      outage,
      log,
      storeKind: kind,
      alertsFiring: watchers.alertsFiring,
    });
  opened.push(
    () => watchers.close(),
    () => monitoring?.close(),
  );
  const state = { draining: false, lameDuck: false };
  const isDraining = (): boolean => state.draining;
  const isLameDuck = (): boolean => state.lameDuck;
  const { tls, grpcTls } = tlsOf(settings, log);
  opened.push(() => tls?.close());
  opened.push(() => grpcTls?.close());
  const headers = settings["legacy-headers"] ? (["draft-11", "legacy"] as const) : "draft-11";
  const attributes = requestAttributes({ file: settings.attributes, region: settings.region });
  const envoy = await startEnvoy({
    folder: envoyFolder(settings),
    xds: xdsOf(settings),
    answers: envoyAnswers(settings),
    counts: envoyCounts(settings),
    limiter,
    rules,
    metrics,
    log,
  });
  opened.push(() => envoy.close());
  const tokens = await openTokens({
    dataFolder: settings["data-folder"],
    adminToken: settings["admin-token"],
    repository: configuration.repository,
    log,
  });

  const failures = noteFailures({
    log,
    metrics,
    repository: configuration.repository,
    networkOf: attributes.networkOf,
  });
  const apiToken = settings["api-token"];
  const carriesToken = apiToken === undefined ? undefined : tokenGuard(apiToken);

  const isOwnHost = ownHosts({ host: settings.host, allowed: settings["allowed-hosts"] });
  const metricsText = allMetrics ?? (() => metrics.registry.metrics());
  const app = createEdge({
    log,
    tls,
    asksForToken: carriesToken !== undefined,
    isLameDuck,
    isOwnHost,
    fastPath: (turnsAway) =>
      createFastCheck({ limiter, observe, region: settings.region, carriesToken, turnsAway, log }),
  });
  registerHealthRoutes(app, {
    limiter,
    isDraining,
    async isKnown(request) {
      const { authorization } = request.headers;
      if (authorization === undefined) return false;
      if (carriesToken?.(authorization) || (await tokens.authenticate(authorization)) !== undefined) return true;
      await failures.ofAdmin(request, "bearer");
      return false;
    },
    storeKind: kind,
    configurationStatus: () => configuration.status(),
    metricsText,
  });
  await registerDataPlane(app, {
    limiter,
    observe,
    region: settings.region,
    carriesToken,
    noteFailure: (request) => failures.ofDataPlane(factsOf(request)),
    gateways: (dataPlane) => {
      registerForwardAuth(dataPlane, { limiter, observe, headers, attributes });
      registerEnvoyJson(dataPlane, { shouldRateLimit: envoy.shouldRateLimit, observe });
    },
  });
  await registerAdministration(app, {
    configuration,
    limiter,
    tokens,
    log,
    watchers,
    monitoring,
    region: settings.region,
    noteFailure: failures.ofAdmin,
  });
  registerDashboard(app, { folder: dashboardFolder(), log });
  await app.ready();

  const grpc = createGrpcServer({
    shouldRateLimit: envoy.shouldRateLimit,
    observe,
    log,
    tls: grpcTls,
    clientName: settings["grpc-tls-client-san"],
    carriesToken,
    noteFailure: failures.ofDataPlane,
  });
  const proxy = proxyOf({ settings, limiter, observe, attributes, headers, tls, isLameDuck, log });

  const metricsListener = createMetricsListener({ text: metricsText, isOwnHost });
  const { host } = settings;
  const close: Service["close"] = async ({ delayMs, mayClose = untilQueueIsEmpty } = { delayMs: 0 }) => {
    state.draining = true;
    grpc.turnAway();
    state.lameDuck = delayMs > 0;
    if (delayMs > 0) await sleep(delayMs);
    state.lameDuck = false;
    monitoring?.endStreams();
    if (app.server.listening) await mayClose();
    const timeoutMs = settings["drain-timeout"];
    await Promise.all([
      drain(app.server, { timeoutMs }),
      grpc.drain({ timeoutMs }),
      drain(metricsListener, { timeoutMs }),
      proxy === undefined ? undefined : drain(proxy, { timeoutMs }),
    ]);
    await app.close();
    envoy.close();
    tls?.close();
    grpcTls?.close();
    await failures.close();
    outage.close();
    await watchers.close();
    await monitoring?.close();
    await otlp?.close();
    await history?.close();
    await configuration.close();
    await limiter.close();
    lock?.release();
  };
  try {
    const scheme = tls === undefined ? "http" : "https";
    const http = `${scheme}://${spell(host)}:${await listen(app.server, { host, port: settings.port, portSetting: "port" })}`;
    const grpcPort = await grpc.listen({ host, port: settings["grpc-port"] });
    const proxyPort = proxy && (await listen(proxy, { host, port: settings["proxy-port"], portSetting: "proxy-port" }));
    const metricsAt = settings["metrics-address"] && addressOf(settings["metrics-address"]);
    if (metricsAt) await listen(metricsListener, { ...metricsAt, portSetting: "metrics-address" });
    warnOfOpenDoors(settings, log);
    // Nobody may have asked yet: an outage at the start would otherwise be told by the first check.
    if (!(await limiter.ready())) {
      const cause = String(limiter.whyNotReady);
      log.warn("the store does not answer yet; until it does, failure policies answer", { cause });
    }
    return {
      http,
      grpc: `${spell(host)}:${grpcPort}`,
      proxy: proxyPort === undefined ? undefined : `${scheme}://${spell(host)}:${proxyPort}`,
      adminTokenFile: tokens.file,
      get rules() {
        return limiter.rules;
      },
      get rulesVersion() {
        return limiter.rulesVersion;
      },
      close,
    };
  } catch (error) {
    opened.length = 0;
    await close();
    throw error;
  }
}

/** `[::1]:9090` and `host:9090`. */
function addressOf(text: string): { host: string; port: number } {
  const at = text.lastIndexOf(":");
  return { host: text.slice(0, at).replace(/^\[(.*)\]$/, "$1"), port: Number(text.slice(at + 1)) };
}

function storeOf({ store, "store-deadline": deadlineMs, "memory-limit": maxBytes }: Settings, log: Log): Store {
  if (store !== "memory") return redisStore(store, { deadlineMs });
  return memoryStore({
    maxBytes,
    onMemoryLimit: ({ evicted }) =>
      log.warn("the memory store is full: counters are forgotten before their end; raise --memory-limit or use Redis", {
        maxBytes,
        ...evicted,
      }),
  });
}

function openFolders(settings: Settings): { release(): void } | undefined {
  const { "data-folder": folder, database, store } = settings;
  makeFolder(folder, "data-folder");
  if (database?.startsWith("sqlite:") && database !== "sqlite::memory:") {
    makeFolder(dirname(database.slice("sqlite:".length)), "database");
  }
  return store === "memory" ? holdFolder(folder) : undefined;
}

/** A store's URL may hold a password; what is told is what stands before it. */
export function storeKind(store: string): string {
  return store.split(":")[0]!;
}

async function openConfiguration(options: {
  settings: Settings;
  log: Log;
  limiter: Limiter;
  rules: RulesInForce;
}): Promise<Configuration> {
  const { settings, log, limiter, rules } = options;
  const configuration = await startConfiguration({
    database: settings.database,
    redisUrl: settings.store === "memory" ? undefined : settings.store,
    rulesFile: settings.rules,
    dataFolder: settings["data-folder"],
    starterRules: hasOwnLimits(settings) ? [] : starterRules,
    onRedisReady: () => void limiter.ready(),
    log,
  });
  // A database may hold them from a first run without Envoy.
  const inForce = (own: readonly Rule[]): readonly Rule[] =>
    hasOwnLimits(settings) ? own.filter((rule) => !isStarterRule(rule)) : own;
  const apply = ({ rules: own, version }: Configuration["current"]): Promise<void> =>
    rules.setOwn(inForce(own), version);
  // First the ear, then the rules: what changes while these are compiled must not be missed.
  configuration.onChange(apply);
  await apply(configuration.current);
  return configuration;
}

/** Loaded only here: the libraries for it are larger than the rest of the service. */
async function openOtlp(
  url: string,
  { settings, metrics, log }: { settings: Settings; metrics: Metrics; log: Log },
): Promise<Otlp> {
  const { startOtlp } = await import("./monitoring/otlp/otlp.js");
  const version = packageVersion();
  const { registry } = metrics;
  return startOtlp({ url, registry, traceShare: settings["trace-share"], version, log, instance: randomUUID() });
}

/** gRPC has certificates of its own, or the others'. */
function tlsOf(settings: Settings, log: Log): { tls: TlsFiles | undefined; grpcTls: TlsFiles | undefined } {
  const open = (cert: string | undefined, key: string | undefined, clientCa: string | undefined) =>
    cert === undefined || key === undefined ? undefined : new TlsFiles({ cert, key, clientCa }, log);
  const { "tls-cert": cert, "tls-key": key, "tls-client-ca": clientCa } = settings;
  const { "grpc-tls-cert": grpcCert, "grpc-tls-key": grpcKey, "grpc-tls-client-ca": grpcClientCa } = settings;
  return {
    tls: open(cert, key, clientCa),
    grpcTls: open(grpcCert ?? cert, grpcKey ?? key, grpcClientCa ?? clientCa),
  };
}

function proxyOf(
  options: { settings: Settings } & Omit<Parameters<typeof createProxy>[0], "upstream">,
): Server | undefined {
  const { settings, ...rest } = options;
  return settings.upstream === undefined ? undefined : createProxy({ upstream: settings.upstream, ...rest });
}

function spell(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function warnOfOpenDoors(settings: Settings, log: Log): void {
  if (isLoopback(settings.host)) return;
  if (settings["api-token"] === undefined) {
    log.warn(
      "THE DATA PLANE IS OPEN: whoever reaches this port can use up anybody's quota. Set --api-token, or listen on loopback",
      {
        host: settings.host,
      },
    );
  }
  if (settings["tls-cert"] === undefined) {
    log.warn("tokens travel unencrypted beyond this machine: set --tls-cert and --tls-key, or end TLS in front", {
      host: settings.host,
    });
  }
}
