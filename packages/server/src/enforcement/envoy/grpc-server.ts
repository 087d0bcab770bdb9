/**
 * The gRPC server: Envoy's rate limit and quota services, health, reflection.
 * Loads the proto files at startup (see proto/README.md). A message that is not valid protobuf is reported as the caller's mistake.
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
  /** Advertised concurrent streams per connection. */
  readonly mostStreams?: number;
  readonly halfSent?: HalfSentBounds;
  /** Absent: our own transport. */
  readonly openTransport?: OpenTransport | undefined;
}

/** Carries the calls: our own HTTP/2, or grpc-js. */
export interface Transport extends Pick<Server, "addService"> {
  injectConnection(socket: Socket): void;
  /** Graceful shutdown: sends GOAWAY, answers calls in flight, closes. */
  drain(options: { timeoutMs: number }): Promise<void>;
}

export interface TransportOptions {
  readonly tls: TlsFiles | undefined;
  readonly sendWithinMs: number;
  readonly mostMessageBytes: number;
  /** Advertised concurrent streams per connection; by default the transport's bound. */
  readonly mostStreams?: number | undefined;
  readonly halfSent?: HalfSentBounds | undefined;
  readonly log: Log;
}

export type OpenTransport = (options: TransportOptions) => Transport;

export interface GrpcServer {
  /** Serves the connections of one of our ports, because grpc-js cannot bound those of its own. */
  serve(port: Port): void;
  /** Lame duck: health checks report NOT_SERVING. Calls are still answered. */
  turnAway(): void;
  /** Graceful shutdown: stops accepting, sends GOAWAY, answers calls in flight, closes. */
  drain(options: { timeoutMs: number }): Promise<void>;
}

const HEALTH_NAMES = ["", "ratelimit"];
/**
 * Descriptor values are client-controlled, and an Envoy that fails open lets a request pass on an error: a client must not get through by a
 * long header. Envoy accepts 60 KiB of headers; this fits them into 17 descriptors.
 */
const MOST_MESSAGE_BYTES = 2 ** 20;
/** Envoy opens one connection per worker thread. */
const MOST_CONNECTIONS = 4_096;
/** As on HTTP: a check is small and takes milliseconds to send. */
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
    onFailure: (error) => log.error("a gRPC call failed", { error: String(error), stack: (error as Error)?.stack }),
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
      // Envoy, or its client, has given up: no later call will release the places.
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
