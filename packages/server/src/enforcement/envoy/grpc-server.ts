/**
 * The gRPC server: Envoy's rate limit and quota services, health, reflection.
 * Protos are read when it starts (see proto/README.md). A message that is no protobuf is the caller's mistake and answered as such.
 */
import type { Http2Server, ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { Server, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { SluiceError } from "sluice";
import type { Port } from "../../http/port.js";
import type { TlsFiles } from "../../http/tls-files.js";
import type { Log } from "../../log.js";
import type { Observe } from "../../monitoring/observe-requests.js";
import { type AccessOptions, refusalOf, textOf } from "./grpc-access.js";
import { SEND_WITHIN_MS, sendDeadline } from "./grpc-bounds.js";
import { credentialsOf } from "./grpc-credentials.js";
import { announceEnd } from "./grpc-goodbye.js";
import { HalfSentCalls } from "./half-sent-calls.js";
import { HealthService } from "./health-service.js";
import { MALFORMED, rateLimitService } from "./message-codec.js";
import { QUOTA_PATH, quotaMethod } from "./quota/quota-messages.js";
import type { QuotaCall, QuotaService } from "./quota/quota-service.js";
import { codes, hasLimit, type RateLimitRequest, type RateLimitResponse } from "./rate-limit-messages.js";
import { addReflection } from "./reflection.js";
import { type ShouldRateLimit, Undecided } from "./should-rate-limit.js";

interface GrpcServerOptions extends AccessOptions {
  readonly shouldRateLimit: ShouldRateLimit;
  /** Absent with --envoy-rlqs false. */
  readonly quotas?: QuotaService | undefined;
  readonly observe: Observe;
  readonly log: Log;
  readonly tls: TlsFiles | undefined;
  /** How long a client may take to send a call. */
  readonly sendWithinMs?: number;
  readonly mostConnections?: number;
}

export interface GrpcServer {
  /** Serves the connections of a port of ours, for grpc-js gives its own no bound. */
  serve(port: Port): void;
  /** Tells health checkers to look elsewhere. Calls are still answered. */
  turnAway(): void;
  /** Takes no more connections, tells clients to go elsewhere (GOAWAY), answers calls under way, then closes. */
  drain(options: { timeoutMs: number }): Promise<void>;
}

const HEALTH_NAMES = ["", "ratelimit"];
/**
 * Values of descriptors are the client's own, and an error lets its request pass where Envoy fails open: no client may get through by a long header.
 * Envoy takes 60 KiB of headers; this holds them in 17 descriptors.
 */
const MOST_MESSAGE_BYTES = 2 ** 20;
/** An Envoy opens one connection for each of its threads. */
const MOST_CONNECTIONS = 4_096;
/** Each that is under way holds memory; more wait at the client until one ends. */
const MOST_CALLS_PER_CONNECTION = 1_000;

export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const server = new Server({
    "grpc.max_receive_message_length": MOST_MESSAGE_BYTES,
    "grpc.keepalive_time_ms": 60_000,
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.max_concurrent_streams": MOST_CALLS_PER_CONNECTION,
    interceptors: [sendDeadline(options.sendWithinMs ?? SEND_WITHIN_MS, [QUOTA_PATH])],
    // Statistics per call that have no reader here; metrics count the requests.
    "grpc.enable_channelz": 0,
  });

  server.addService(rateLimitService(), { ShouldRateLimit: answerCalls(options) });
  if (options.quotas !== undefined) serveQuotas(server, options.quotas, options);
  const health = new HealthService(HEALTH_NAMES);
  health.addTo(server);
  addReflection(server);

  const injector = server.createConnectionInjector(credentialsOf(options.tls));
  const halfSent = new HalfSentCalls();
  for (const http2 of http2Of(server).keys()) halfSent.watch(http2);
  const sockets = new Set<Socket>();
  let close = async (): Promise<void> => undefined;

  return {
    serve(port) {
      close = () => port.close();
      port.serve((socket) => {
        if (sockets.size >= (options.mostConnections ?? MOST_CONNECTIONS)) {
          socket.destroy();
          return;
        }
        sockets.add(socket);
        socket.once("close", () => sockets.delete(socket));
        injector.injectConnection(socket);
      });
    },
    turnAway: () => health.turnAway(),
    async drain({ timeoutMs }) {
      await close();
      health.endWatches();
      options.quotas?.endAll();
      if (options.tls === undefined) await announceEnds(sessionsOf(server), sockets);
      // Without channelz grpc-js forgets its sessions, and a forced end of its own would wait for clients that never read.
      const insist = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, timeoutMs);
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      clearTimeout(insist);
      server.forceShutdown();
    },
  };
}

function serveQuotas(server: Server, quotas: QuotaService, access: AccessOptions): void {
  server.addService(
    { StreamRateLimitQuotas: quotaMethod() },
    {
      StreamRateLimitQuotas: (call: QuotaCall) => {
        const refusal = refusalOf(call, access);
        if (refusal === undefined) quotas.serve(call);
        else void Promise.resolve(refusal).then((found) => call.emit("error", found));
      },
    },
  );
}

type Call = ServerUnaryCall<RateLimitRequest | typeof MALFORMED, RateLimitResponse>;
type Done = sendUnaryData<RateLimitResponse>;

function answerCalls(options: GrpcServerOptions): (call: Call, done: Done) => void {
  const { log, shouldRateLimit } = options;
  const observer = options.observe("grpc");

  const fail = (error: unknown, done: Done): void => {
    if (error instanceof SluiceError && error.code === "invalid-request") {
      done({ code: status.INVALID_ARGUMENT, details: error.message });
      return;
    }
    if (error instanceof Undecided) {
      done({ code: status.UNAVAILABLE, details: error.message });
      return;
    }
    log.error("ShouldRateLimit failed", { error: String(error), stack: (error as Error)?.stack });
    done({ code: status.INTERNAL, details: "Sluice failed; its log says why." });
  };

  return (call, done) => {
    const refusal = refusalOf(call, options);
    if (refusal !== undefined) {
      void Promise.resolve(refusal).then(done);
      return;
    }
    if (call.request === MALFORMED) {
      done({ code: status.INVALID_ARGUMENT, details: "the message is no RateLimitRequest" });
      return;
    }
    const arrival = { sinceMs: performance.now(), traceparent: textOf(call, "traceparent") };
    shouldRateLimit(call.request).then(
      (response) => {
        // Envoy gave up waiting, or its client did: no later call will give the places back.
        if (call.cancelled) response.abandon?.();
        const allowed = response.overallCode === codes.ok;
        observer.answered({ allowed, matched: hasLimit(response) }, arrival);
        done(null, response);
      },
      (error: unknown) => fail(error, done),
    );
  };
}

/** A session does not let its socket be written to: it is found by its port. */
async function announceEnds(sessions: readonly ServerHttp2Session[], sockets: Iterable<Socket>): Promise<void> {
  const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  const byName = new Map(Array.from(sockets, (socket) => [nameOf(socket), socket]));
  const ends = sessions.map((session) => {
    const socket = session.destroyed ? undefined : byName.get(nameOf(session.socket as Socket));
    return socket && announceEnd(session, socket);
  });
  await Promise.all(ends);
}

function sessionsOf(server: Server): ServerHttp2Session[] {
  return [...http2Of(server).values()].flatMap(({ sessions }) => [...sessions]);
}

/** grpc-js keeps them to itself. */
function http2Of(server: Server): ReadonlyMap<Http2Server, { readonly sessions: ReadonlySet<ServerHttp2Session> }> {
  return (server as unknown as { http2Servers: ReturnType<typeof http2Of> }).http2Servers;
}
