/**
 * A gRPC server with its own HTTP/2 implementation. It accepts grpc-js's service definitions and handlers, so that either can serve.
 * Node's http2 module costs several times what a decision does; docs/decisions has the figures.
 */
import { isIPv6, type Socket } from "node:net";
import { createServer, TLSSocket, type TlsOptions, type Server as TlsServer } from "node:tls";
import type { ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import type { Caller, Handler, Method } from "./call.js";
import { Connection } from "./http2/connection.js";
import { encodeHeaders } from "./http2/encode-headers.js";
import { errorCodes } from "./http2/protocol.js";
import type { RequestHead } from "./http2/request-head.js";
import { WaitingData } from "./http2/sender.js";
import type { Stream } from "./http2/stream.js";
import { OpenStreams } from "./http2/streams.js";
import { type HalfSentBounds, MessageBudget } from "./message-budget.js";
import { grpcCodes, statusBlock } from "./statuses.js";
import { StreamingCall } from "./streaming-call.js";
import { UnaryCall } from "./unary-call.js";

interface TransportOptions {
  readonly mostMessageBytes: number;
  /** How long a client may take to send the connection preface, and to send a call. */
  readonly sendWithinMs: number;
  /** How long the answer of a call may wait for a window, and a connection take nothing of the bytes that wait for it. */
  readonly takeWithinMs?: number;
  /** Advertised concurrent streams per connection; by default the enforced maximum. */
  readonly mostStreams?: number | undefined;
  /** Absent: plain text. */
  readonly tls?: TlsOptions | undefined;
  /** How long a drain waits for TLS handshakes in progress. */
  readonly handshakesWithinMs?: number;
  readonly halfSent?: HalfSentBounds | undefined;
  readonly onMistake?: ((message: string) => void) | undefined;
  /** An internal error that ended a call or a connection. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
}

/** Keepalive: an idle connection gets a PING, and is closed if it does not answer. */
const PING_AFTER_MS = 60_000;
const ANSWER_WITHIN_MS = 20_000;
const LOOK_EVERY_MS = 1_000;
/** A client that reads opens its windows within a round trip: one that only pings must not hold our memory for ever. */
const TAKE_WITHIN_MS = 60_000;
/** During a drain. A handshake takes milliseconds, and a client that connects and stays silent must not delay the shutdown. */
const HANDSHAKES_WITHIN_MS = 1_000;

/** What was last seen of a connection. */
interface Life {
  pingedMonotonicMs: number | undefined;
  /** Bytes that its socket had taken while others waited for it, and since when it has not taken more. */
  takenBytes: number | undefined;
  tookMonotonicMs: number;
}

export class GrpcTransport {
  readonly #options: TransportOptions;
  readonly #methods = new Map<string, Method>();
  readonly #open = new OpenStreams();
  readonly #waiting = new WaitingData();
  readonly #connections = new Map<Connection, Life>();
  readonly #budget: MessageBudget;
  readonly #timer: NodeJS.Timeout;
  readonly #tls: TlsServer | undefined;
  /** TLS handshakes in progress: a drain waits for them, so that their clients get answers too. */
  #handshakes = 0;
  #onHandshakesOver: (() => void) | undefined;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#budget = new MessageBudget(options.halfSent);
    this.#timer = setInterval(() => this.#look(performance.now()), LOOK_EVERY_MS);
    this.#timer.unref();
    this.#tls = options.tls && this.#tlsServer(options.tls);
  }

  addService(definition: ServiceDefinition, handlers: UntypedServiceImplementation): void {
    for (const [name, method] of Object.entries(definition)) {
      const handler = handlers[name] as Handler | undefined;
      if (handler !== undefined) this.#methods.set(method.path, { ...method, handler });
    }
  }

  injectConnection(socket: Socket): void {
    if (this.#tls === undefined) this.#serve(socket);
    else {
      this.#handshakes++;
      this.#tls.emit("connection", socket);
    }
  }

  /** Applies to new connections. */
  renewCertificate(tls: TlsOptions): void {
    this.#tls?.setSecureContext(tls);
  }

  /** Graceful shutdown: sends GOAWAY, answers calls in flight, closes. Connections left after the timeout are cut. */
  async drain({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    const insist = setTimeout(() => {
      this.#onHandshakesOver?.();
      for (const connection of this.#connections.keys()) connection.destroy();
    }, timeoutMs);
    await this.#closeAll();
    if (this.#handshakes > 0) {
      await new Promise<void>((resolve) => {
        this.#onHandshakesOver = resolve;
        setTimeout(resolve, this.#options.handshakesWithinMs ?? HANDSHAKES_WITHIN_MS).unref();
      });
      await this.#closeAll();
    }
    clearTimeout(insist);
    clearInterval(this.#timer);
  }

  async #closeAll(): Promise<void> {
    await Promise.all(Array.from(this.#connections.keys(), (connection) => connection.close()));
  }

  #handshakeOver(): void {
    this.#handshakes--;
    if (this.#handshakes === 0) this.#onHandshakesOver?.();
  }

  #tlsServer(tls: TlsOptions): TlsServer {
    const server = createServer({ ...tls, ALPNProtocols: ["h2"], handshakeTimeout: this.#options.sendWithinMs });
    server.on("secureConnection", (socket) => {
      if (socket.alpnProtocol === "h2") this.#serve(socket);
      else socket.destroy();
      this.#handshakeOver();
    });
    server.on("tlsClientError", (_error, socket) => {
      socket.destroy();
      this.#handshakeOver();
    });
    return server;
  }

  #serve(socket: Socket): void {
    const peer = this.#budget.join();
    const onFailure = (error: unknown): void => this.#options.onFailure?.(error);
    const connection = new Connection(socket, {
      onRequest: (stream, head) => this.#take(stream, head, caller),
      onEnd: (mistake) => {
        this.#budget.leave(peer);
        this.#connections.delete(connection);
        if (mistake !== undefined) this.#options.onMistake?.(mistake.message);
      },
      onFailure,
      toldStreams: this.#options.mostStreams,
      open: this.#open,
      waiting: this.#waiting,
    });
    const { mostMessageBytes } = this.#options;
    const caller: Caller = {
      connection,
      budget: this.#budget,
      peer,
      name: nameOf(socket),
      certificateNames: () => (socket instanceof TLSSocket ? socket.getPeerCertificate()?.subjectaltname : undefined),
      mostMessageBytes,
      onFailure,
    };
    this.#connections.set(connection, { pingedMonotonicMs: undefined, takenBytes: undefined, tookMonotonicMs: 0 });
    socket.resume();
  }

  #take(stream: Stream, head: RequestHead, caller: Caller): void {
    if (head.isTooLarge) refuse(stream, caller, { status: 431, text: "the headers are too large" });
    else if (!isGrpc(head.get("content-type")))
      refuse(stream, caller, { status: 415, text: "expected application/grpc" });
    else if (head.method !== "POST") refuse(stream, caller, { status: 405, text: "expected POST" });
    else {
      const method = this.#methods.get(head.path!);
      if (method === undefined) {
        const details = "there is no such method here";
        stream.end(statusBlock({ code: grpcCodes.unimplemented, details }, { isOnly: true }));
      } else if (method.requestStream || method.responseStream) new StreamingCall({ stream, head, method, caller });
      else stream.reader = new UnaryCall({ stream, head, method, caller });
    }
  }

  #look(nowMonotonicMs: number): void {
    const { sendWithinMs, takeWithinMs = TAKE_WITHIN_MS } = this.#options;
    for (const [connection, life] of this.#connections) {
      const silentMs = nowMonotonicMs - connection.lastReadMonotonicMs;
      if (!connection.hasPreface) {
        if (nowMonotonicMs - connection.openedMonotonicMs > sendWithinMs) connection.destroy();
        continue;
      }
      for (const stream of connection.streams()) {
        const since = stream.reader?.waitsSinceMonotonicMs;
        if (since !== undefined && nowMonotonicMs - since > sendWithinMs) stream.reader!.onLate();
        const { unsentSinceMonotonicMs: unsentSince } = stream;
        // The call alone: others of a busy connection may be waiting for it at any moment, and are served.
        if (unsentSince !== undefined && nowMonotonicMs - unsentSince > takeWithinMs)
          stream.reset(errorCodes.enhanceYourCalm);
      }
      const { takenBytes } = connection;
      if (takenBytes === undefined || takenBytes !== life.takenBytes) {
        life.takenBytes = takenBytes;
        life.tookMonotonicMs = nowMonotonicMs;
      } else if (nowMonotonicMs - life.tookMonotonicMs > takeWithinMs) {
        // It may ping as often as it likes: what it does not read is never sent.
        connection.destroy();
        continue;
      }
      if (silentMs < PING_AFTER_MS) life.pingedMonotonicMs = undefined;
      else if (life.pingedMonotonicMs === undefined) {
        life.pingedMonotonicMs = nowMonotonicMs;
        connection.ping();
      } else if (nowMonotonicMs - life.pingedMonotonicMs > ANSWER_WITHIN_MS) connection.destroy();
    }
  }
}

/** Messages are protobuf without gRPC-Web framing, so `application/grpc-web` and `application/grpc+json` do not match. */
const GRPC = /^application\/grpc(\+proto)?[ \t]*(;|$)/i;

function isGrpc(contentType: string | undefined): boolean {
  return contentType === "application/grpc" || (contentType !== undefined && GRPC.test(contentType));
}

/** For requests that are not gRPC: a plain HTTP answer, once the request is complete. */
function refuse(stream: Stream, { connection }: Caller, { status, text }: { status: number; text: string }): void {
  let waitsSinceMonotonicMs: number | undefined = connection.lastReadMonotonicMs;
  const answer = (): void => {
    // Once only: the stream lives on while the answer waits for the peer's window.
    if (waitsSinceMonotonicMs === undefined) return;
    waitsSinceMonotonicMs = undefined;
    stream.headers(encodeHeaders({ "content-type": "text/plain" }, status));
    stream.data(Buffer.from(`${text}\n`), { isLast: true });
  };
  stream.reader = {
    get waitsSinceMonotonicMs() {
      return waitsSinceMonotonicMs;
    },
    onData: () => undefined,
    onEnd: answer,
    onLate: answer,
    onGone: () => undefined,
  };
}

function nameOf({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return isIPv6(remoteAddress) ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}
