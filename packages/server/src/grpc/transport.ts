/**
 * A gRPC server on HTTP/2 framing of our own. It takes the service definitions and handlers of grpc-js, so that either can serve.
 * Node's http2 module costs several times what a decision does; docs/decisions has the figures.
 */
import { isIPv6, type Socket } from "node:net";
import { createServer, TLSSocket, type TlsOptions, type Server as TlsServer } from "node:tls";
import type { ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import type { Caller, Handler, Method } from "./call.js";
import { Connection } from "./http2/connection.js";
import { encodeHeaders } from "./http2/encode-headers.js";
import type { RequestHead } from "./http2/request-head.js";
import type { Stream } from "./http2/stream.js";
import { OpenStreams } from "./http2/streams.js";
import { type HalfSentBounds, MessageBudget } from "./message-budget.js";
import { grpcCodes, statusBlock } from "./statuses.js";
import { StreamingCall } from "./streaming-call.js";
import { UnaryCall } from "./unary-call.js";

interface TransportOptions {
  readonly mostMessageBytes: number;
  /** How long a client may take to send a call, and to begin its connection. */
  readonly sendWithinMs: number;
  /** How many calls at once a connection is told to make; by default as many as are taken. */
  readonly mostStreams?: number | undefined;
  /** Absent: the connections are not encrypted. */
  readonly tls?: TlsOptions | undefined;
  /** How long a drain waits for TLS handshakes. */
  readonly handshakesWithinMs?: number;
  readonly halfSent?: HalfSentBounds | undefined;
  readonly onMistake?: ((message: string) => void) | undefined;
}

/** A silent connection is asked for a sign of life, and given up without one. */
const PING_AFTER_MS = 60_000;
const ANSWER_WITHIN_MS = 20_000;
const LOOK_EVERY_MS = 1_000;
/** At the end: a handshake takes milliseconds, and a client that opened a connection and is silent holds nobody up for long. */
const HANDSHAKES_WITHIN_MS = 1_000;

export class GrpcTransport {
  readonly #options: TransportOptions;
  readonly #methods = new Map<string, Method>();
  readonly #open = new OpenStreams();
  /** With when each was asked for a sign of life. */
  readonly #connections = new Map<Connection, { pingedMonotonicMs: number | undefined }>();
  readonly #budget: MessageBudget;
  readonly #timer: NodeJS.Timeout;
  readonly #tls: TlsServer | undefined;
  /** TLS handshakes under way: their clients are answered, too. */
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

  /** Of connections to come. */
  renewCertificate(tls: TlsOptions): void {
    this.#tls?.setSecureContext(tls);
  }

  /** Tells clients to go elsewhere, answers the calls under way, closes; ends what is left after the timeout. */
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
    const connection = new Connection(socket, {
      onRequest: (stream, head) => this.#take(stream, head, caller),
      onEnd: (mistake) => {
        this.#budget.leave(peer);
        this.#connections.delete(connection);
        if (mistake !== undefined) this.#options.onMistake?.(mistake.message);
      },
      toldStreams: this.#options.mostStreams,
      open: this.#open,
    });
    const { mostMessageBytes } = this.#options;
    const caller: Caller = {
      connection,
      budget: this.#budget,
      peer,
      name: nameOf(socket),
      certificateNames: () => (socket instanceof TLSSocket ? socket.getPeerCertificate().subjectaltname : undefined),
      mostMessageBytes,
    };
    this.#connections.set(connection, { pingedMonotonicMs: undefined });
    socket.resume();
  }

  #take(stream: Stream, head: RequestHead, caller: Caller): void {
    if (head.isTooLarge) refuse(stream, caller, { status: 431, text: "the headers are too large" });
    else if (!head.get("content-type")?.startsWith("application/grpc"))
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
    const { sendWithinMs } = this.#options;
    for (const [connection, life] of this.#connections) {
      const silentMs = nowMonotonicMs - connection.lastReadMonotonicMs;
      if (!connection.hasPreface) {
        if (nowMonotonicMs - connection.openedMonotonicMs > sendWithinMs) connection.destroy();
        continue;
      }
      for (const stream of connection.streams()) {
        const since = stream.reader?.waitsSinceMonotonicMs;
        if (since !== undefined && nowMonotonicMs - since > sendWithinMs) stream.reader!.onLate();
      }
      if (silentMs < PING_AFTER_MS) life.pingedMonotonicMs = undefined;
      else if (life.pingedMonotonicMs === undefined) {
        life.pingedMonotonicMs = nowMonotonicMs;
        connection.ping();
      } else if (nowMonotonicMs - life.pingedMonotonicMs > ANSWER_WITHIN_MS) connection.destroy();
    }
  }
}

/** Not gRPC: an answer that other programs understand, when the request is whole. */
function refuse(stream: Stream, { connection }: Caller, { status, text }: { status: number; text: string }): void {
  const answer = (): void => {
    stream.headers(encodeHeaders({ "content-type": "text/plain" }, status));
    stream.data(Buffer.from(`${text}\n`), { isLast: true });
  };
  stream.reader = {
    waitsSinceMonotonicMs: connection.lastReadMonotonicMs,
    onData: () => undefined,
    onEnd: answer,
    onLate: answer,
    onGone: () => undefined,
  };
}

function nameOf({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return isIPv6(remoteAddress) ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}
