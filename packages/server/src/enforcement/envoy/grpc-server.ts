/**
 * The gRPC server: Envoy's rate limit and quota services, health, reflection.
 * Protos are read when it starts (see proto/README.md). A message that is no protobuf is the caller's mistake and answered as such.
 */
import type { Socket } from "node:net";
import type { Server, ServerUnaryCall, sendUnaryData } from "@grpc/grpc-js";
import { SluiceError } from "sluice";
import type { MaybePromise } from "sluice/internal";
import type { HalfSentBounds } from "../../grpc/message-budget.js";
import { grpcCodes } from "../../grpc/statuses.js";
import { GrpcTransport } from "../../grpc/transport.js";
import type { Port } from "../../http/port.js";
import { serverOptions, type TlsFiles } from "../../http/tls-files.js";
import type { Log } from "../../log.js";
import type { Observe } from "../../monitoring/observe-requests.js";
import { type AccessOptions, refusalOf, textOf } from "./grpc-access.js";
import { HealthService } from "./health-service.js";
import { MALFORMED, rateLimitService } from "./message-codec.js";
import { SpelledResponse } from "./plain-requests.js";
import { quotaMethod } from "./quota/quota-messages.js";
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
  /** How many calls at once a connection is told to make. */
  readonly mostStreams?: number;
  readonly halfSent?: HalfSentBounds;
  /** Absent: ours. */
  readonly openTransport?: OpenTransport | undefined;
}

/** What carries the calls: HTTP/2 of our own, or grpc-js. */
export interface Transport extends Pick<Server, "addService"> {
  injectConnection(socket: Socket): void;
  /** Tells clients to go elsewhere (GOAWAY), answers calls under way, then closes. */
  drain(options: { timeoutMs: number }): Promise<void>;
}

export interface TransportOptions {
  readonly tls: TlsFiles | undefined;
  readonly sendWithinMs: number;
  readonly mostMessageBytes: number;
  /** How many calls at once a connection is told to make; by default the bound of the transport. */
  readonly mostStreams?: number | undefined;
  readonly halfSent?: HalfSentBounds | undefined;
  readonly log: Log;
}

export type OpenTransport = (options: TransportOptions) => Transport;

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
/** As on HTTP: a check is small, and its sender needs milliseconds. */
const SEND_WITHIN_MS = 10_000;

export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const { tls, log, sendWithinMs = SEND_WITHIN_MS, halfSent, openTransport = openOwn, mostStreams } = options;
  const bounds = { sendWithinMs, halfSent, mostStreams, mostMessageBytes: MOST_MESSAGE_BYTES };
  const server = openTransport({ tls, log, ...bounds });
  server.addService(rateLimitService(), { ShouldRateLimit: answerCalls(options) });
  if (options.quotas !== undefined) serveQuotas(server, options.quotas, options);
  const health = new HealthService(HEALTH_NAMES);
  health.addTo(server);
  addReflection(server);

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
        server.injectConnection(socket);
      });
    },
    turnAway: () => health.turnAway(),
    async drain({ timeoutMs }) {
      await close();
      health.endWatches();
      options.quotas?.endAll();
      await server.drain({ timeoutMs });
    },
  };
}

function openOwn({ tls, log, ...bounds }: TransportOptions): Transport {
  const transport = new GrpcTransport({
    ...bounds,
    tls: tls && serverOptions(tls.current),
    onMistake: (mistake) => log.debug("a gRPC connection ended by a mistake of its client", { mistake }),
  });
  tls?.onChange((renewed) => transport.renewCertificate(renewed));
  return transport;
}

function serveQuotas(server: Transport, quotas: QuotaService, access: AccessOptions): void {
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
      done({ code: grpcCodes.invalidArgument, details: error.message });
      return;
    }
    if (error instanceof Undecided) {
      done({ code: grpcCodes.unavailable, details: error.message });
      return;
    }
    log.error("ShouldRateLimit failed", { error: String(error), stack: (error as Error)?.stack });
    done({ code: grpcCodes.internal, details: "Sluice failed; its log says why." });
  };

  return (call, done) => {
    const refusal = refusalOf(call, options);
    if (refusal !== undefined) {
      void Promise.resolve(refusal).then(done);
      return;
    }
    if (call.request === MALFORMED) {
      done({ code: grpcCodes.invalidArgument, details: "the message is no RateLimitRequest" });
      return;
    }
    const arrival = { sinceMs: performance.now(), traceparent: textOf(call, "traceparent") };
    const answer = (response: RateLimitResponse | SpelledResponse): void => {
      if (response instanceof SpelledResponse) {
        observer.answered(response, arrival);
        done(null, response.bytes as unknown as RateLimitResponse);
        return;
      }
      // Envoy gave up waiting, or its client did: no later call will give the places back.
      if (call.cancelled) response.abandon?.();
      const allowed = response.overallCode === codes.ok;
      observer.answered({ allowed, matched: hasLimit(response) }, arrival);
      done(null, response);
    };
    let made: MaybePromise<RateLimitResponse | SpelledResponse>;
    try {
      made = shouldRateLimit.plain?.(call.request) ?? shouldRateLimit(call.request);
    } catch (error) {
      fail(error, done);
      return;
    }
    if (made instanceof Promise) made.then(answer, (error: unknown) => fail(error, done));
    else answer(made);
  };
}
