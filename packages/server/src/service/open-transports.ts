/**
 * Step 4 of the start: opens every transport in front of the limiter (HTTP, gRPC, proxy, the metrics listener).
 * Also their graceful shutdown: lame duck, drain the accept queue, close the listeners, finish requests in flight.
 */
import type { Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { openTokens, readFirstToken, SingleSignOn, type Tokens } from "../administration/administration.js";
import type { AlertPolicies } from "../configuration/alert-policies.js";
import type { Configuration } from "../configuration/configuration.js";
import { type RequestAttributes, requestAttributes } from "../enforcement/attributes/request-attributes.js";
import { type Envoy, startEnvoy } from "../enforcement/envoy/envoy.js";
import { createGrpcServer, type GrpcServer, type OpenTransport } from "../enforcement/envoy/grpc-server.js";
import { tokenGuard } from "../enforcement/http/api-token.js";
import { createProxy } from "../enforcement/proxy/proxy.js";
import type { RulesInForce } from "../enforcement/rules-in-force.js";
import { drain } from "../http/drain.js";
import { createMetricsListener } from "../http/metrics-listener.js";
import { isLoopback, ownHosts } from "../http/own-hosts.js";
import { type Port, servePort } from "../http/port.js";
import { TlsFiles } from "../http/tls-files.js";
import type { Cleanup } from "../instance/cleanup.js";
import type { Instance } from "../instance/instance.js";
import type { Monitoring } from "../monitoring/monitoring.js";
import type { Settings } from "../settings/settings.js";
import { envoyAnswers, envoyCounts, envoyFolder, xdsOf } from "./envoy-settings.js";
import { createHttpApp } from "./http-app.js";
import { type NotedFailures, noteFailures } from "./note-failures.js";
import { noteLimitMoves } from "./note-limit-moves.js";
import { noteModelLetters } from "./note-model-letters.js";
import { type OpenLlmGateway, openLlmGateway } from "./open-llm-gateway.js";
import { closePorts, type Ports } from "./open-ports.js";
import type { CloseOptions } from "./service.js";

interface TransportsOptions {
  readonly instance: Instance;
  readonly configuration: Configuration;
  readonly alertPolicies: AlertPolicies;
  readonly rules: RulesInForce;
  readonly monitoring: Monitoring;
  /** Prometheus text, aggregated over all workers. */
  readonly metricsText: () => Promise<string>;
  /** Already open; connections wait. */
  readonly ports: Ports;
}

interface Transports {
  readonly http: string;
  readonly grpc: string;
  readonly proxy: string | undefined;
  readonly adminTokenFile: string | undefined;
  /** Lame duck for `delayMs`. The cleanup closes the ports. */
  turnAway(options: CloseOptions): Promise<void>;
}

/** Shared by all transports. */
export interface TransportParts extends TransportsOptions {
  readonly attributes: RequestAttributes;
  readonly envoy: Envoy;
  readonly tokens: Tokens;
  readonly sso: SingleSignOn | undefined;
  readonly failures: NotedFailures;
  /** Checks an Authorization header for the API token; absent: the data plane is open. */
  readonly carriesToken: ((authorization: string | undefined) => boolean) | undefined;
  readonly isOwnHost: (host: string | undefined) => boolean;
  readonly headers: "draft-11" | readonly ["draft-11", "legacy"];
  readonly tls: TlsFiles | undefined;
  readonly grpcTls: TlsFiles | undefined;
  /** With `--usage`. */
  readonly llm: OpenLlmGateway | undefined;
  /** `draining`: from the signal to the end. `lameDuck`: its first phase, not ready but still serving. */
  readonly ending: { draining: boolean; lameDuck: boolean };
}

export async function openTransports(options: TransportsOptions, cleanup: Cleanup): Promise<Transports> {
  const { ports } = options;
  const { settings, health } = options.instance;
  cleanup.add(() => closePorts({ ...ports }));
  const parts = await openParts(options, cleanup);
  const app = await createHttpApp(parts);
  const grpc = await grpcOf(parts);
  const timeoutMs = settings["drain-timeout"];
  const servers = httpServersOf(parts, app.server);
  cleanup.add(async () => {
    const ended = Promise.all(
      servers.map(async ({ server, port }) => {
        await port.close();
        await drain(server, { timeoutMs });
      }),
    );
    // gRPC closes last, to keep its downtime short: an Envoy that fails closed answers 500 meanwhile.
    await untilEnded(ended, timeoutMs / 2);
    await grpc.drain({ timeoutMs: timeoutMs / 2 });
    await ended;
    await app.close();
  });
  for (const { server, port } of servers) servePort(server, port);
  grpc.serve(ports.grpc);
  warnOfOpenDoors(options.instance);
  // Otherwise the first check would discover an outage at startup.
  await health.probe();
  return {
    ...addressesOf(parts),
    adminTokenFile: parts.tokens.file,
    async turnAway({ delayMs, whenServed, isReplaced = false }) {
      if (!isReplaced) {
        parts.ending.draining = true;
        grpc.turnAway();
      }
      parts.ending.lameDuck = delayMs > 0;
      if (delayMs > 0) {
        await sleep(delayMs);
        await whenServed?.();
      }
      parts.ending.lameDuck = false;
      options.monitoring.figures?.live.close();
    },
  };
}

function httpServersOf(parts: TransportParts, server: Server): { server: Server; port: Port }[] {
  const { ports, isOwnHost, metricsText } = parts;
  const servers = [{ server, port: ports.http }];
  if (ports.proxy !== undefined) servers.push({ server: proxyOf(parts), port: ports.proxy });
  if (ports.metrics !== undefined) {
    servers.push({ server: createMetricsListener({ text: metricsText, isOwnHost }), port: ports.metrics });
  }
  return servers;
}

async function untilEnded(ended: Promise<unknown>, timeoutMs: number): Promise<void> {
  const late = new AbortController();
  await Promise.race([ended, sleep(timeoutMs, undefined, { signal: late.signal }).catch(() => undefined)]);
  late.abort();
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
    quotas: settings["envoy-rlqs"],
    counts: envoyCounts(settings),
    limiter,
    region: settings.region,
    rules,
    metrics,
    log,
  });
  cleanup.add(() => envoy.close());
  const { repository } = configuration;
  const { "data-folder": dataFolder, "admin-token": adminToken, "api-token": apiToken } = settings;
  const sso = openSingleSignOn(settings, readFirstToken({ dataFolder, adminToken }));
  const tokens = await openTokens({ dataFolder, adminToken, repository, log, ssoBond: sso?.bond });
  const failures = noteFailures({ log, metrics, repository, networkOf: attributes.networkOf });
  cleanup.add(() => failures.close());
  const limitMoves = noteLimitMoves({ limiter, repository, log });
  cleanup.add(() => limitMoves.close());
  if (settings.usage !== undefined) noteModelLetters(limiter, log);
  return {
    ...options,
    ...certificates,
    attributes,
    envoy,
    tokens,
    sso,
    failures,
    carriesToken: apiToken === undefined ? undefined : tokenGuard(apiToken),
    llm: await openLlmGateway(settings, log, (used) => monitoring.noteModel?.(used)),
    isOwnHost: ownHosts({ host: settings.host, allowed: settings["allowed-hosts"] }),
    headers: settings["legacy-headers"] ? ["draft-11", "legacy"] : "draft-11",
    ending: { draining: false, lameDuck: false },
  };
}

function openSingleSignOn(settings: Settings, firstToken: string): SingleSignOn | undefined {
  const { "oidc-issuer": issuer, "oidc-client-id": clientId, "public-url": publicUrl } = settings;
  if (issuer === undefined || clientId === undefined || publicUrl === undefined) return undefined;
  return new SingleSignOn({
    ...{ issuer: new URL(issuer), clientId, publicUrl, firstToken },
    clientSecret: settings["oidc-client-secret"],
    scopes: settings["oidc-scopes"],
    roleClaim: settings["oidc-role-claim"],
    roles: settings["oidc-roles"],
  });
}

/** gRPC may have its own certificate; it defaults to the HTTP one. */
function openCertificates({ settings, log }: Instance): Pick<TransportParts, "tls" | "grpcTls"> {
  const open = (cert: string | undefined, key: string | undefined, clientCa: string | undefined) =>
    cert === undefined || key === undefined
      ? undefined
      : new TlsFiles({ cert, key, clientCa, settings: namesOf(cert) }, log);
  const namesOf = (file: string): string => (file === cert ? "tls-cert, tls-key" : "grpc-tls-cert, grpc-tls-key");
  const { "tls-cert": cert, "tls-key": key, "tls-client-ca": clientCa } = settings;
  const { "grpc-tls-cert": grpcCert, "grpc-tls-key": grpcKey, "grpc-tls-client-ca": grpcClientCa } = settings;
  return {
    tls: open(cert, key, clientCa),
    grpcTls: open(grpcCert ?? cert, grpcKey ?? key, grpcClientCa ?? clientCa),
  };
}

async function grpcOf(parts: TransportParts): Promise<GrpcServer> {
  const { instance, monitoring, envoy, failures, carriesToken, grpcTls } = parts;
  const { settings, log } = instance;
  return createGrpcServer({
    shouldRateLimit: envoy.shouldRateLimit,
    quotas: envoy.quotas,
    observe: monitoring.observe,
    log,
    tls: grpcTls,
    clientName: settings["grpc-tls-client-san"],
    mostStreams: settings["grpc-streams"],
    carriesToken,
    noteFailure: failures.ofCall,
    openTransport: await transportOf(settings),
  });
}

/** Loads grpc-js only if it is configured. */
async function transportOf(settings: Settings): Promise<OpenTransport | undefined> {
  if (settings["grpc-transport"] === "own") return undefined;
  const { openGrpcJs } = await import("../enforcement/envoy/grpc-js-transport.js");
  return openGrpcJs;
}

function proxyOf({ instance, monitoring, attributes, headers, tls, llm, ending }: TransportParts): Server {
  const { settings, log, limiter } = instance;
  const upstream = settings.upstream!;
  const isLameDuck = (): boolean => ending.lameDuck;
  const { observe } = monitoring;
  const towards = {
    upstream,
    upstreamHeaders: settings["upstream-headers"] ?? {},
    upstreamTimeoutMs: settings["upstream-timeout"] ?? (llm === undefined ? UPSTREAM_SILENCE_MS : MODEL_SILENCE_MS),
  };
  return createProxy({ ...towards, limiter, observe, attributes, headers, tls, llm, isLameDuck, log });
}

const UPSTREAM_SILENCE_MS = 120_000;
/** Reasoning models may send nothing until their whole answer is ready; the vendors' SDKs wait ten minutes before they retry. */
const MODEL_SILENCE_MS = 600_000;

function addressesOf({ instance, ports, tls }: TransportParts): Pick<Transports, "http" | "grpc" | "proxy"> {
  const host = spell(instance.settings.host);
  const scheme = tls === undefined ? "http" : "https";
  return {
    http: `${scheme}://${host}:${ports.http.number}`,
    grpc: `${host}:${ports.grpc.number}`,
    proxy: ports.proxy && `${scheme}://${host}:${ports.proxy.number}`,
  };
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
