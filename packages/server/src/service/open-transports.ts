/**
 * The fourth step of the start: every transport in front of the limiter (HTTP, gRPC, proxy, the listener for metrics), each listening.
 * Their graceful shutdown is here too: lame duck, then the accept queue empties, the listeners close, requests under way end.
 */
import cluster from "node:cluster";
import type { Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { openTokens, type Tokens } from "../administration/administration.js";
import type { Configuration } from "../configuration/configuration.js";
import { type RequestAttributes, requestAttributes } from "../enforcement/attributes/request-attributes.js";
import { type Envoy, startEnvoy } from "../enforcement/envoy/envoy.js";
import { createGrpcServer, type GrpcServer } from "../enforcement/envoy/grpc-server.js";
import { tokenGuard } from "../enforcement/http/api-token.js";
import { createProxy } from "../enforcement/proxy/proxy.js";
import type { RulesInForce } from "../enforcement/rules-in-force.js";
import { untilQueueIsEmpty } from "../http/accept-queue.js";
import { drain } from "../http/drain.js";
import { listen } from "../http/listen.js";
import { createMetricsListener } from "../http/metrics-listener.js";
import { isLoopback, ownHosts } from "../http/own-hosts.js";
import { TlsFiles } from "../http/tls-files.js";
import type { Cleanup } from "../instance/cleanup.js";
import type { Instance } from "../instance/instance.js";
import type { Monitoring } from "../monitoring/monitoring.js";
import type { Settings } from "../settings/settings.js";
import { envoyAnswers, envoyCounts, envoyFolder, xdsOf } from "./envoy-settings.js";
import { createHttpApp } from "./http-app.js";
import { type NotedFailures, noteFailures } from "./note-failures.js";
import { type GrpcPort, openGrpcPort } from "./open-grpc-port.js";

interface TransportsOptions {
  readonly instance: Instance;
  readonly configuration: Configuration;
  readonly rules: RulesInForce;
  readonly monitoring: Monitoring;
  /** Prometheus text, of all workers where there are several. */
  readonly metricsText: () => Promise<string>;
  /** Absent: not open yet. */
  readonly grpcPort: GrpcPort | undefined;
}

interface Transports {
  readonly http: string;
  readonly grpc: string;
  readonly proxy: string | undefined;
  readonly adminTokenFile: string | undefined;
  /** Lame duck for `delayMs`, then waits until the listeners may close; to close them is the cleanup's. */
  turnAway(options: { delayMs: number; mayClose?: (() => Promise<void>) | undefined }): Promise<void>;
}

/** The parts that the transports share. */
export interface TransportParts extends TransportsOptions {
  readonly attributes: RequestAttributes;
  readonly envoy: Envoy;
  readonly tokens: Tokens;
  readonly failures: NotedFailures;
  /** Whether an Authorization header carries the API token; absent: the data plane is open. */
  readonly carriesToken: ((authorization: string | undefined) => boolean) | undefined;
  readonly isOwnHost: (host: string | undefined) => boolean;
  readonly headers: "draft-11" | readonly ["draft-11", "legacy"];
  readonly tls: TlsFiles | undefined;
  readonly grpcTls: TlsFiles | undefined;
  /** `draining`: from the signal to the end. `lameDuck`: the first part of it, not ready and still serving. */
  readonly ending: { draining: boolean; lameDuck: boolean };
}

export async function openTransports(options: TransportsOptions, cleanup: Cleanup): Promise<Transports> {
  const { settings, health } = options.instance;
  const grpcPort = options.grpcPort ?? (await openGrpcPort(settings));
  cleanup.add(() => grpcPort.listener.close());
  const parts = await openParts(options, cleanup);
  const app = await createHttpApp(parts);
  const grpc = grpcOf(parts);
  const proxy = proxyOf(parts);
  const metricsListener = createMetricsListener({ text: options.metricsText, isOwnHost: parts.isOwnHost });
  const timeoutMs = settings["drain-timeout"];
  cleanup.add(async () => {
    const others = [app.server, metricsListener, proxy].filter((server) => server !== undefined);
    const ended = Promise.all(others.map((server) => drain(server, { timeoutMs })));
    if (!cluster.isWorker) await untilGrpcMayClose(ended, timeoutMs / 2);
    await grpc.drain({ timeoutMs: timeoutMs / 2 });
    await ended;
    await app.close();
  });
  const isTls = parts.tls !== undefined;
  const addresses = await listenOnAll(settings, { app, grpc, grpcPort, proxy, metricsListener, isTls });
  warnOfOpenDoors(options.instance);
  // An outage at the start would otherwise be found by the first check.
  await health.probe();
  return {
    ...addresses,
    adminTokenFile: parts.tokens.file,
    async turnAway({ delayMs, mayClose = untilQueueIsEmpty }) {
      parts.ending.draining = true;
      grpc.turnAway();
      parts.ending.lameDuck = delayMs > 0;
      if (delayMs > 0) await sleep(delayMs);
      parts.ending.lameDuck = false;
      options.monitoring.figures?.live.close();
      await mayClose();
    },
  };
}

/** gRPC closes last, so that it is away for the shortest time: an Envoy that fails closed answers 500 meanwhile. Workers close together. */
async function untilGrpcMayClose(othersEnded: Promise<unknown>, timeoutMs: number): Promise<void> {
  const late = new AbortController();
  await Promise.race([othersEnded, sleep(timeoutMs, undefined, { signal: late.signal }).catch(() => undefined)]);
  late.abort();
  await untilQueueIsEmpty();
}

async function openParts(options: TransportsOptions, cleanup: Cleanup): Promise<TransportParts> {
  const { instance, configuration, rules, monitoring } = options;
  const { settings, log, limiter } = instance;
  const { metrics } = monitoring;
  const certificates = openCertificates(instance);
  cleanup.add(() => certificates.tls?.close());
  cleanup.add(() => certificates.grpcTls?.close());
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
  cleanup.add(() => envoy.close());
  const { repository } = configuration;
  const { "data-folder": dataFolder, "admin-token": adminToken, "api-token": apiToken } = settings;
  const tokens = await openTokens({ dataFolder, adminToken, repository, log });
  const failures = noteFailures({ log, metrics, repository, networkOf: attributes.networkOf });
  cleanup.add(() => failures.close());
  return {
    ...options,
    ...certificates,
    attributes,
    envoy,
    tokens,
    failures,
    carriesToken: apiToken === undefined ? undefined : tokenGuard(apiToken),
    isOwnHost: ownHosts({ host: settings.host, allowed: settings["allowed-hosts"] }),
    headers: settings["legacy-headers"] ? ["draft-11", "legacy"] : "draft-11",
    ending: { draining: false, lameDuck: false },
  };
}

/** gRPC has certificates of its own, or the others'. */
function openCertificates({ settings, log }: Instance): Pick<TransportParts, "tls" | "grpcTls"> {
  const open = (cert: string | undefined, key: string | undefined, clientCa: string | undefined) =>
    cert === undefined || key === undefined ? undefined : new TlsFiles({ cert, key, clientCa }, log);
  const { "tls-cert": cert, "tls-key": key, "tls-client-ca": clientCa } = settings;
  const { "grpc-tls-cert": grpcCert, "grpc-tls-key": grpcKey, "grpc-tls-client-ca": grpcClientCa } = settings;
  return {
    tls: open(cert, key, clientCa),
    grpcTls: open(grpcCert ?? cert, grpcKey ?? key, grpcClientCa ?? clientCa),
  };
}

function grpcOf({ instance, monitoring, envoy, failures, carriesToken, grpcTls }: TransportParts): GrpcServer {
  const { settings, log } = instance;
  return createGrpcServer({
    shouldRateLimit: envoy.shouldRateLimit,
    observe: monitoring.observe,
    log,
    tls: grpcTls,
    clientName: settings["grpc-tls-client-san"],
    carriesToken,
    noteFailure: failures.ofDataPlane,
  });
}

function proxyOf({ instance, monitoring, attributes, headers, tls, ending }: TransportParts): Server | undefined {
  const { settings, log, limiter } = instance;
  const { upstream } = settings;
  const isLameDuck = (): boolean => ending.lameDuck;
  if (upstream === undefined) return undefined;
  return createProxy({ upstream, limiter, observe: monitoring.observe, attributes, headers, tls, isLameDuck, log });
}

interface Listeners {
  readonly app: FastifyInstance;
  readonly grpc: GrpcServer;
  readonly grpcPort: GrpcPort;
  readonly proxy: Server | undefined;
  readonly metricsListener: Server;
  readonly isTls: boolean;
}

async function listenOnAll(
  settings: Settings,
  { app, grpc, grpcPort, proxy, metricsListener, isTls }: Listeners,
): Promise<Pick<Transports, "http" | "grpc" | "proxy">> {
  const { host } = settings;
  const scheme = isTls ? "https" : "http";
  const httpPort = await listen(app.server, { host, port: settings.port, portSetting: "port" });
  grpc.serve(grpcPort.listener);
  const proxyPort = proxy && (await listen(proxy, { host, port: settings["proxy-port"], portSetting: "proxy-port" }));
  const metricsAt = settings["metrics-address"] && addressOf(settings["metrics-address"]);
  if (metricsAt) await listen(metricsListener, { ...metricsAt, portSetting: "metrics-address" });
  return {
    http: `${scheme}://${spell(host)}:${httpPort}`,
    grpc: `${spell(host)}:${grpcPort.port}`,
    proxy: proxyPort === undefined ? undefined : `${scheme}://${spell(host)}:${proxyPort}`,
  };
}

/** `[::1]:9090` and `host:9090`. */
function addressOf(text: string): { host: string; port: number } {
  const at = text.lastIndexOf(":");
  return { host: text.slice(0, at).replace(/^\[(.*)\]$/, "$1"), port: Number(text.slice(at + 1)) };
}

function spell(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function warnOfOpenDoors({ settings, log }: Instance): void {
  const { host } = settings;
  if (isLoopback(host)) return;
  if (settings["api-token"] === undefined) {
    log.warn(
      "THE DATA PLANE IS OPEN: every client that reaches this port can use up any quota. Set --api-token, or listen on loopback",
      { host },
    );
  }
  if (settings["tls-cert"] === undefined) {
    log.warn("tokens travel unencrypted beyond this machine: set --tls-cert and --tls-key, or end TLS in front", {
      host,
    });
  }
}
