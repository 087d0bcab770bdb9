/**
 * A call with a stream of messages in, out, or both: an object-mode duplex stream, as in grpc-js. Backpressure works both ways through flow
 * control: the handler gets a message when it asks for one and everything it has written has been sent.
 */
import { Duplex } from "node:stream";
import { type CallOptions, metadataOf, timeoutMsOf } from "./call.js";
import { CallBody } from "./call-body.js";
import { errorCodes } from "./http2/protocol.js";
import type { StreamReader } from "./http2/stream.js";
import { framed } from "./message-frame.js";
import { UnreadableMessage } from "./message-reader.js";
import { readMessage } from "./read-message.js";
import {
  ANSWER_HEADERS,
  FAILED,
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
  /** The single request of a method without request streaming. */
  request: unknown;
  cancelled = false;
  #isWanted = false;
  #isWhole = false;
  #hasHeaders = false;
  #isOver = false;
  #waitsSinceMonotonicMs: number | undefined;
  readonly #goOn = (): void => this.#deliver();

  constructor(options: CallOptions) {
    // Decode nothing ahead of a handler that has paused.
    super({ objectMode: true, autoDestroy: false, readableHighWaterMark: 0 });
    this.#options = options;
    const { caller, stream, method, head } = options;
    this.#waitsSinceMonotonicMs = method.requestStream ? undefined : caller.connection.lastReadMonotonicMs;
    this.#body = new CallBody(options);
    stream.reader = this.#reader();
    // Errors set by the handler. A Node system error has a `code` too, but a string.
    this.on("error", ({ code, details = "" }: Partial<GrpcStatus>) => {
      this.#fail({ code: typeof code === "number" ? code : grpcCodes.internal, details }, { isAnswer: true });
    });
    const timeoutMs = timeoutMsOf(head);
    if (timeoutMs !== undefined) {
      this.#deadline = setTimeout(() => this.#leave(PAST_DEADLINE), Math.min(timeoutMs, MOST_TIMER_MS));
      this.#deadline.unref();
    }
    caller.connection.begin();
    if (!caller.budget.begin(caller.peer)) this.#fail(TOO_MANY);
    else if (method.requestStream) this.#try(() => this.#handle());
  }

  get metadata(): { get(name: string): string[] } {
    return metadataOf(this.#options.head);
  }

  getPeer(): string {
    return this.#options.caller.name;
  }

  hangUp(): void {
    this.#options.caller.connection.destroy();
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
    let message: Buffer;
    try {
      message = framed(method.responseSerialize(value as never));
    } catch (error) {
      this.#options.caller.onFailure(error);
      done(error as Error);
      return;
    }
    this.#sendHeaders();
    if (stream.data(message)) {
      done();
      return;
    }
    stream.onSent = () => {
      done();
      this.#deliver();
    };
  }

  override _final(done: (error?: Error) => void): void {
    if (!this.#isOver) {
      this.#sendHeaders();
      this.#options.stream.end(OK_TRAILERS);
      this.#over({ isAnswer: true });
    }
    done();
  }

  /** The reader that the connection feeds. */
  #reader(): StreamReader {
    const since = () => this.#waitsSinceMonotonicMs;
    return {
      get waitsSinceMonotonicMs() {
        return since();
      },
      onData: (bytes) => this.#take(bytes),
      onEnd: () => this.#takeEnd(),
      onGone: () => this.#leave(undefined),
      onLate: () => {
        // A status would queue behind the answers that the client does not read.
        if (this.#isUnread) this.#options.stream.reset(errorCodes.enhanceYourCalm);
        else this.#leave(NOT_SENT);
      },
    };
  }

  /** Whether written answers still wait to be sent. */
  get #isUnread(): boolean {
    return this.writableLength > 0 || this.#options.caller.connection.isBehind;
  }

  #take(bytes: Buffer): void {
    if (this.#isOver) return;
    this.#try(() => {
      this.#body.read(bytes);
      if (this.#options.method.requestStream) this.#hand();
      else this.#body.allowMore();
    });
  }

  #takeEnd(): void {
    if (this.#isOver) return;
    this.#isWhole = true;
    if (this.#options.method.requestStream) {
      this.#deliver();
      return;
    }
    this.#waitsSinceMonotonicMs = undefined;
    this.#try(() => {
      const message = this.#body.next();
      if (message === undefined) throw new UnreadableMessage(grpcCodes.invalidArgument, "expected one message");
      this.request = readMessage(message, this.#options);
      this.#handle();
    });
  }

  #handle(): void {
    this.#options.method.handler(this as never, () => undefined);
  }

  #deliver(): void {
    if (!this.#isOver) this.#try(() => this.#hand());
  }

  /** An exception ends this call only; thrown from a timer it would crash the process. */
  #try(act: () => void): void {
    try {
      act();
    } catch (error) {
      if (!(error instanceof UnreadableMessage)) this.#options.caller.onFailure(error);
      this.#leave(error instanceof UnreadableMessage ? error.status : FAILED);
    }
  }

  /**
   * Delivers the next message if the handler asked for one. Handlers may answer without checking for backpressure (reflection does), so
   * none is delivered while answers are unsent: 64 KiB of requests can ask for many megabytes.
   */
  #hand(): void {
    const { connection } = this.#options.caller;
    if (connection.isBehind) connection.whenRead(this.#goOn);
    const message = this.#isWanted && !this.#isUnread ? this.#body.next() : undefined;
    if (message !== undefined) {
      this.#isWanted = false;
      this.#waitsSinceMonotonicMs = undefined;
      this.push(readMessage(message, this.#options));
    } else this.#wait();
    if (this.#isWhole && this.#body.isEmpty) this.push(null);
  }

  /**
   * The clock runs while the client owes the rest of a message, or does not read its answers; not while the handler is what we wait for.
   */
  #wait(): void {
    if (this.#body.isEmpty || !(this.#isWanted || this.#isUnread)) this.#waitsSinceMonotonicMs = undefined;
    else this.#waitsSinceMonotonicMs ??= performance.now();
    if (!this.#isWanted || this.#isUnread) return;
    if (this.#isWhole && !this.#body.isEmpty)
      throw new UnreadableMessage(grpcCodes.invalidArgument, "the call ends within a message");
    this.#body.allowMore();
  }

  #sendHeaders(): void {
    if (this.#hasHeaders) return;
    this.#hasHeaders = true;
    this.#options.stream.headers(ANSWER_HEADERS);
  }

  #fail(status: GrpcStatus, { isAnswer = false } = {}): void {
    if (this.#isOver) return;
    this.#over({ isAnswer });
    this.#options.stream.end(statusBlock(status, { isOnly: !this.#hasHeaders }));
  }

  /** Ends the call from our side, or because the client has gone. The handler is notified by "cancelled". */
  #leave(status: GrpcStatus | undefined): void {
    if (this.#isOver) return;
    this.cancelled = true;
    if (status === undefined) this.#over();
    else this.#fail(status);
    this.emit("cancelled", "cancelled");
    this.destroy();
  }

  /** Only answered calls refill the flood guard: a call that is opened and reset costs the client nothing. */
  #over({ isAnswer = false } = {}): void {
    this.#isOver = true;
    clearTimeout(this.#deadline);
    this.#body.release();
    const { connection, budget, peer } = this.#options.caller;
    budget.end(peer);
    connection.notWhenRead(this.#goOn);
    if (isAnswer) connection.decided();
    else connection.abandoned();
  }
}
