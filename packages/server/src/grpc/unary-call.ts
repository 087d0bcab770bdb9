/**
 * A call with one message in and one out: the path that is fast. A call that arrives whole in one frame, as nearly all do, makes no object
 * beside itself, and no copy of its bytes.
 */

import { type CallOptions, timeoutMsOf } from "./call.js";
import { CallBody } from "./call-body.js";
import type { ReadField } from "./http2/header-field.js";
import type { StreamReader } from "./http2/stream.js";
import { PREFIX_BYTES } from "./message-frame.js";
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

const NO_MESSAGE = Symbol("no message");
const NO_VALUES: readonly string[] = [];

export class UnaryCall implements StreamReader {
  readonly #options: CallOptions;
  readonly #beganMonotonicMs: number;
  /** The message. */
  request: unknown = NO_MESSAGE;
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

  /** Itself: no object for each call. */
  get metadata(): { get(name: string): readonly string[] } {
    return this;
  }

  get(name: string): readonly string[] {
    const value = this.#options.head.get(name as ReadField);
    return value === undefined ? NO_VALUES : [value];
  }

  /** Nobody waits for the answer. */
  get cancelled(): boolean {
    return this.#options.stream.isGone || this.#isPastDeadline();
  }

  getPeer(): string {
    return this.#options.caller.name;
  }

  getAuthContext(): { sslPeerCertificate?: { subjectaltname: string } } {
    const names = this.#options.caller.certificateNames();
    return names === undefined ? {} : { sslPeerCertificate: { subjectaltname: names } };
  }

  onData(bytes: Buffer): void {
    if (!this.#isHalfSent) return;
    try {
      if (this.#isWholeMessage(bytes)) this.#takeMessage(bytes.subarray(PREFIX_BYTES));
      else {
        this.#body ??= new CallBody(this.#options, (message) => this.#takeMessage(message));
        this.#body.read(bytes);
      }
    } catch (error) {
      if (!(error instanceof UnreadableMessage)) throw error;
      this.#fail(error.status);
    }
  }

  onEnd(): void {
    if (!this.#isHalfSent) return;
    if (this.request === NO_MESSAGE || this.#body?.isWithin) {
      this.#fail({ code: grpcCodes.invalidArgument, details: "the call ends before its message" });
      return;
    }
    // Its client has given up: nothing is decided, so nothing is charged for an answer that nobody reads.
    if (this.#isPastDeadline()) {
      this.#fail(PAST_DEADLINE);
      return;
    }
    this.#over();
    const { connection } = this.#options.caller;
    const { handler } = this.#options.method;
    connection.begin();
    handler(this as never, (error, value) => {
      connection.decided();
      this.#answer(error, value);
    });
  }

  onGone(): void {
    this.#over();
  }

  onLate(): void {
    this.#fail(NOT_SENT);
  }

  /** Ends the call before it was decided. */
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

  #takeMessage(message: Buffer): void {
    if (this.request !== NO_MESSAGE) throw new UnreadableMessage(grpcCodes.invalidArgument, "more than one message");
    this.request = this.#options.method.requestDeserialize(message);
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

  /** It is whole, or will never be. */
  #over(): void {
    if (!this.#isHalfSent) return;
    this.#isHalfSent = false;
    this.#body?.release();
    this.#options.caller.budget.end(this.#options.caller.peer);
  }
}
