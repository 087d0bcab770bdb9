/**
 * A call with one message in and one out: the fast path. A call that arrives whole in one frame, as nearly all do, allocates no object
 * besides itself and copies no bytes.
 */
import assert from "node:assert";
import { type CallOptions, timeoutMsOf } from "./call.js";
import { CallBody, moreThanOne } from "./call-body.js";
import type { ReadField } from "./http2/header-field.js";
import type { StreamReader } from "./http2/stream.js";
import { PREFIX_BYTES } from "./message-frame.js";
import { UnreadableMessage } from "./message-reader.js";
import { readMessage } from "./read-message.js";
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

const UNREAD = Symbol("unread");
const NO_VALUES: readonly string[] = [];

export class UnaryCall implements StreamReader {
  readonly #options: CallOptions;
  readonly #beganMonotonicMs: number;
  /** The message as received, kept until the handler returns. */
  #message: Buffer | undefined;
  #isCompressed = false;
  #request: unknown = UNREAD;
  #body: CallBody | undefined;
  #isHalfSent = true;

  constructor(options: CallOptions) {
    this.#options = options;
    const { connection, budget, peer } = options.caller;
    this.#beganMonotonicMs = connection.lastReadMonotonicMs;
    if (!budget.begin(peer)) this.#fail(TOO_MANY);
  }

  get waitsSinceMonotonicMs(): number | undefined {
    return this.#isHalfSent ? this.#beganMonotonicMs : undefined;
  }

  /**
   * The message, decoded when the handler first reads it: an unauthorised call costs no decoding. The bytes are valid until the handler
   * returns, so a handler must read it before its first `await`. Throws `UnreadableMessage`, which ends the call.
   */
  get request(): unknown {
    if (this.#request === UNREAD) {
      assert(this.#message !== undefined, "a handler asks for its message before it returns");
      this.#request = readMessage({ bytes: this.#message, isCompressed: this.#isCompressed }, this.#options);
    }
    return this.#request;
  }

  /** The call itself: saves an allocation per call. */
  get metadata(): { get(name: string): readonly string[] } {
    return this;
  }

  get(name: string): readonly string[] {
    const value = this.#options.head.get(name as ReadField);
    return value === undefined ? NO_VALUES : [value];
  }

  /** The client no longer waits for the answer. */
  get cancelled(): boolean {
    return this.#options.stream.isGone || this.#isPastDeadline();
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

  onData(bytes: Buffer): void {
    if (!this.#isHalfSent) return;
    try {
      if (this.#message !== undefined) throw moreThanOne();
      if (this.#isWholeMessage(bytes)) {
        const message = bytes.subarray(PREFIX_BYTES);
        // The frame's bytes stay valid only if the handler runs within this read, at the end of the stream.
        this.#message = this.#options.stream.isRemoteClosed ? message : Buffer.from(message);
      } else {
        this.#body ??= new CallBody(this.#options);
        this.#body.read(bytes);
        this.#body.allowMore();
      }
    } catch (error) {
      if (!(error instanceof UnreadableMessage)) throw error;
      this.#fail(error.status);
    }
  }

  onEnd(): void {
    if (!this.#isHalfSent) return;
    if (!this.#hasMessage()) {
      this.#fail({ code: grpcCodes.invalidArgument, details: "the call ends before its message" });
      return;
    }
    // The client has given up: decide nothing, so that nothing is charged for an answer that is never read.
    if (this.#isPastDeadline()) {
      this.#fail(PAST_DEADLINE);
      return;
    }
    this.#over();
    const { connection } = this.#options.caller;
    const { handler } = this.#options.method;
    connection.begin();
    try {
      handler(this as never, (error, value) => {
        connection.decided();
        this.#answer(error, value);
      });
    } catch (error) {
      if (!(error instanceof UnreadableMessage)) throw error;
      connection.abandoned();
      this.#options.stream.end(statusBlock(error.status, { isOnly: true }));
    } finally {
      this.#message = undefined;
    }
  }

  onGone(): void {
    this.#over();
  }

  onLate(): void {
    this.#fail(NOT_SENT);
  }

  /** Ends the call before it reaches the handler. */
  #fail(status: GrpcStatus): void {
    this.#over();
    this.#options.stream.end(statusBlock(status, { isOnly: true }));
  }

  #isWholeMessage(bytes: Buffer): boolean {
    return (
      this.#body === undefined &&
      bytes.length >= PREFIX_BYTES &&
      bytes[0] === 0 &&
      bytes.readUInt32BE(1) === bytes.length - PREFIX_BYTES &&
      bytes.length - PREFIX_BYTES <= this.#options.caller.mostMessageBytes
    );
  }

  #hasMessage(): boolean {
    if (this.#body === undefined) return this.#message !== undefined;
    const message = this.#body.next();
    if (message === undefined) return false;
    this.#message = message.bytes;
    this.#isCompressed = message.isCompressed;
    return true;
  }

  #answer(error: Partial<GrpcStatus> | null, value: unknown): void {
    const { stream, method } = this.#options;
    if (stream.isGone) return;
    if (error !== null) {
      const { code = grpcCodes.internal, details = "" } = error;
      stream.end(statusBlock({ code, details }, { isOnly: true }));
    } else if (this.#isPastDeadline()) {
      stream.end(statusBlock(PAST_DEADLINE, { isOnly: true }));
    } else {
      stream.answer(ANSWER_HEADERS, method.responseSerialize(value as never), OK_TRAILERS);
    }
  }

  #isPastDeadline(): boolean {
    const timeoutMs = timeoutMsOf(this.#options.head);
    return timeoutMs !== undefined && performance.now() - this.#beganMonotonicMs > timeoutMs;
  }

  /** The request is complete, or never will be. */
  #over(): void {
    if (!this.#isHalfSent) return;
    this.#isHalfSent = false;
    this.#body?.release();
    this.#options.caller.budget.end(this.#options.caller.peer);
  }
}
