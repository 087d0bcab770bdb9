/**
 * One stream: a request on its way in, an answer on its way out.
 */
import { type ErrorCode, INITIAL_WINDOW } from "./protocol.js";
import type { Sender } from "./sender.js";

/** Reads a request's body. */
export interface StreamReader {
  /** Since when it is being sent; undefined: nothing is missing. */
  readonly waitsSinceMonotonicMs: number | undefined;
  /** It was not sent in time. */
  onLate(): void;
  /** The bytes are valid during the call. */
  onData(bytes: Buffer): void;
  /** The request is whole. */
  onEnd(): void;
  /** The peer has reset the stream, or the connection is gone: nobody waits for an answer. */
  onGone(): void;
}

/** Waits for the peer's window. `trailers` end the stream. */
type Unsent = { readonly data: Buffer; from: number; readonly isLast: boolean } | { readonly trailers: Buffer };

export class Stream {
  readonly id: number;
  readonly #sender: Sender;
  reader: StreamReader | undefined;
  /** How many bytes the peer takes from us. */
  sendWindow: number;
  /** How many bytes the peer may send, and how many of those that it sent are not allowed again yet. */
  receiveWindow = INITIAL_WINDOW;
  owedBytes = 0;
  /** What `content-length` says, and what came. */
  declaredBytes: number | undefined;
  receivedBytes = 0;
  /** The peer sends no more; we send no more. */
  isRemoteClosed = false;
  isLocalClosed = false;
  unsent: Unsent[] = [];
  /** Called when nothing waits for a window any more. */
  onSent: (() => void) | undefined;

  constructor(id: number, sender: Sender) {
    this.id = id;
    this.#sender = sender;
    this.sendWindow = sender.initialWindow;
  }

  /** Whether its body is as long as `content-length` says, as far as one can tell (RFC 9113, section 8.1.1). */
  get isAsDeclared(): boolean {
    if (this.declaredBytes === undefined) return true;
    return this.isRemoteClosed ? this.receivedBytes === this.declaredBytes : this.receivedBytes <= this.declaredBytes;
  }

  /** Nobody waits for an answer. */
  get isGone(): boolean {
    return this.isLocalClosed;
  }

  /** The whole answer: headers, a message of gRPC without its prefix, trailers. The bytes are used during the call. */
  answer(headers: Buffer, message: Buffer, trailers: Buffer): void {
    if (!this.isLocalClosed) this.#sender.answer(this, headers, message, trailers);
  }

  headers(block: Buffer): void {
    if (!this.isLocalClosed) this.#sender.headers(this, block, { isLast: false });
  }

  /** An answer that is headers alone, or the trailers behind the messages. */
  end(block: Buffer): void {
    if (!this.isLocalClosed) this.#sender.end(this, block);
  }

  /** Returns whether the peer's window took it all; otherwise it waits. */
  data(bytes: Buffer, { isLast = false } = {}): boolean {
    return this.isLocalClosed || this.#sender.data(this, bytes, { isLast });
  }

  /** Lets the peer send as much again as it has sent. */
  allowMore(): void {
    if (!this.isRemoteClosed) this.#sender.allowMore(this);
  }

  reset(code: ErrorCode): void {
    if (!this.isLocalClosed || !this.isRemoteClosed) this.#sender.reset(this, code);
  }
}
