/**
 * A call with many messages in, out, or both: a duplex stream of objects, as in grpc-js. A slow reader on either side stops the other
 * (backpressure by flow control).
 */
import { Duplex } from "node:stream";
import { type CallOptions, metadataOf, timeoutMsOf } from "./call.js";
import { CallBody } from "./call-body.js";
import type { StreamReader } from "./http2/stream.js";
import { framed } from "./message-frame.js";
import { UnreadableMessage } from "./message-reader.js";
import {
  ANSWER_HEADERS,
  type GrpcStatus,
  grpcCodes,
  NOT_SENT,
  OK_TRAILERS,
  PAST_DEADLINE,
  statusBlock,
  TOO_MANY,
} from "./statuses.js";

const MOST_TIMER_MS = 2 ** 31 - 1;

export class StreamingCall extends Duplex {
  readonly #options: CallOptions;
  readonly #body: CallBody;
  readonly #deadline: NodeJS.Timeout | undefined;
  /** The one message of a client that sends no stream. */
  request: unknown;
  cancelled = false;
  /** Messages that the handler has not asked for yet. */
  readonly #waiting: Buffer[] = [];
  #isWanted = false;
  #isWhole = false;
  #hasHeaders = false;
  #isOver = false;
  #waitsSinceMonotonicMs: number | undefined;

  constructor(options: CallOptions) {
    super({ objectMode: true, autoDestroy: false });
    this.#options = options;
    const { caller, stream, method, head } = options;
    this.#waitsSinceMonotonicMs = method.requestStream ? undefined : caller.connection.lastReadMonotonicMs;
    this.#body = new CallBody(options, (message) => this.#waiting.push(Buffer.from(message)));
    stream.reader = this.#reader();
    this.on("error", ({ code = grpcCodes.internal, details = "" }: Partial<GrpcStatus>) =>
      this.#fail({ code, details }),
    );
    const timeoutMs = timeoutMsOf(head);
    if (timeoutMs !== undefined) {
      this.#deadline = setTimeout(() => this.#leave(PAST_DEADLINE), Math.min(timeoutMs, MOST_TIMER_MS));
      this.#deadline.unref();
    }
    caller.connection.begin();
    if (!caller.budget.begin(caller.peer)) this.#fail(TOO_MANY);
    else if (method.requestStream) this.#handle();
  }

  get metadata(): { get(name: string): string[] } {
    return metadataOf(this.#options.head);
  }

  getPeer(): string {
    return this.#options.caller.name;
  }

  getAuthContext(): { sslPeerCertificate?: { subjectaltname: string } } {
    const names = this.#options.caller.certificateNames();
    return names === undefined ? {} : { sslPeerCertificate: { subjectaltname: names } };
  }

  override _read(): void {
    this.#isWanted = true;
    this.#deliver();
  }

  override _write(value: unknown, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    const { stream, method } = this.#options;
    if (this.#isOver) {
      done();
      return;
    }
    this.#sendHeaders();
    if (stream.data(framed(method.responseSerialize(value as never)))) done();
    else stream.onSent = () => done();
  }

  override _final(done: (error?: Error) => void): void {
    if (!this.#isOver) {
      this.#sendHeaders();
      this.#options.stream.end(OK_TRAILERS);
      this.#over();
    }
    done();
  }

  /** The reading side, as the connection sees it. */
  #reader(): StreamReader {
    const since = () => this.#waitsSinceMonotonicMs;
    return {
      get waitsSinceMonotonicMs() {
        return since();
      },
      onData: (bytes) => this.#take(bytes),
      onEnd: () => this.#takeEnd(),
      onGone: () => this.#leave(undefined),
      onLate: () => this.#leave(NOT_SENT),
    };
  }

  #take(bytes: Buffer): void {
    if (this.#isOver) return;
    try {
      this.#body.read(bytes);
    } catch (error) {
      if (!(error instanceof UnreadableMessage)) throw error;
      this.#leave(error.status);
      return;
    }
    if (!this.#options.method.requestStream) return;
    this.#deliver();
  }

  #takeEnd(): void {
    if (this.#isOver) return;
    this.#waitsSinceMonotonicMs = undefined;
    this.#isWhole = true;
    if (this.#options.method.requestStream) {
      this.#deliver();
      return;
    }
    const [message, more] = this.#waiting;
    if (message === undefined || more !== undefined || this.#body.isWithin) {
      this.#fail({ code: grpcCodes.invalidArgument, details: "expected one message" });
      return;
    }
    this.request = this.#options.method.requestDeserialize(message);
    this.#handle();
  }

  #handle(): void {
    this.#options.method.handler(this as never, () => undefined);
  }

  /** As many messages as the handler wants; the client may send more when it has none left. */
  #deliver(): void {
    while (this.#isWanted && this.#waiting.length > 0) {
      this.#isWanted = this.push(this.#options.method.requestDeserialize(this.#waiting.shift()!));
    }
    const isAwaited = this.#isWanted && this.#waiting.length === 0 && !this.#isWhole;
    // A client that we do not let send is not late.
    if (isAwaited && this.#body.isWithin) this.#waitsSinceMonotonicMs ??= performance.now();
    else this.#waitsSinceMonotonicMs = undefined;
    if (isAwaited) this.#options.stream.allowMore();
    else if (this.#isWhole && this.#waiting.length === 0) this.push(null);
  }

  #sendHeaders(): void {
    if (this.#hasHeaders) return;
    this.#hasHeaders = true;
    this.#options.stream.headers(ANSWER_HEADERS);
  }

  #fail(status: GrpcStatus): void {
    if (this.#isOver) return;
    this.#over();
    this.#options.stream.end(statusBlock(status, { isOnly: !this.#hasHeaders }));
  }

  /** Ends the call from our side, or because the client has gone: the handler hears of it. */
  #leave(status: GrpcStatus | undefined): void {
    if (this.#isOver) return;
    this.cancelled = true;
    if (status === undefined) this.#over();
    else this.#fail(status);
    this.emit("cancelled", "cancelled");
    this.destroy();
  }

  #over(): void {
    this.#isOver = true;
    clearTimeout(this.#deadline);
    this.#body.release();
    const { connection, budget, peer } = this.#options.caller;
    budget.end(peer);
    connection.decided();
  }
}
