/** One stream: a request in, an answer out. */
import { type ErrorCode, INITIAL_WINDOW } from "./protocol.js";
import type { Sender } from "./sender.js";

/** Reads a request's body. */
export interface StreamReader {
  /** When the peer began to owe us data; undefined if nothing is missing. */
  readonly waitsSinceMonotonicMs: number | undefined;
  /** The rest did not arrive in time. */
  onLate(): void;
  /** The bytes are valid only during the call. */
  onData(bytes: Buffer): void;
  /** The request is complete. */
  onEnd(): void;
  /** The peer reset the stream, or the connection is gone: an answer cannot be delivered. */
  onGone(): void;
}

/** Waiting for the peer's window. `trailers` end the stream. */
type Unsent = { readonly data: Buffer; from: number; readonly isLast: boolean } | { readonly trailers: Buffer };

export class Stream {
  readonly id: number;
  readonly #sender: Sender;
  reader: StreamReader | undefined;
  /** How many bytes the peer accepts from us. */
  sendWindow: number;
  /** How many bytes the peer may send, and how many it has sent since the last WINDOW_UPDATE. */
  receiveWindow = INITIAL_WINDOW;
  owedBytes = 0;
  /** The value of `content-length`, and the bytes received. */
  declaredBytes: number | undefined;
  receivedBytes = 0;
  /** Half-closed states: the peer sends no more; we send no more. */
  isRemoteClosed = false;
  isLocalClosed = false;
  unsent: Unsent[] = [];
  /** Since when some of its data has been waiting without a break; undefined if none waits. */
  unsentSinceMonotonicMs: number | undefined;
  /** Called once, when no data waits for the window any more. */
  onSent: (() => void) | undefined;

  constructor(id: number, sender: Sender) {
    this.id = id;
    this.#sender = sender;
    this.sendWindow = sender.initialWindow;
  }

  /** Whether the body matches `content-length`, as far as it has arrived (RFC 9113, section 8.1.1). */
  get isAsDeclared(): boolean {
    if (this.declaredBytes === undefined) return true;
    return this.isRemoteClosed ? this.receivedBytes === this.declaredBytes : this.receivedBytes <= this.declaredBytes;
  }

  /** An answer can no longer be delivered. */
  get isGone(): boolean {
    return this.isLocalClosed;
  }

  /** Sends the whole answer: headers, one gRPC message (prefix added here), trailers. The bytes are copied during the call. */
  answer(headers: Buffer, message: Buffer, trailers: Buffer): void {
    if (!this.isLocalClosed) this.#sender.answer(this, headers, message, trailers);
  }

  headers(block: Buffer): void {
    if (!this.isLocalClosed) this.#sender.headers(this, block, { isLast: false });
  }

  /** Sends a headers-only answer, or the trailers after the messages. */
  end(block: Buffer): void {
    if (!this.isLocalClosed) this.#sender.end(this, block);
  }

  /** Returns false if some of it waits for the peer's window. */
  data(bytes: Buffer, { isLast = false } = {}): boolean {
    return this.isLocalClosed || this.#sender.data(this, bytes, { isLast });
  }

  /** Grants the peer as much window as it has used. */
  allowMore(): void {
    if (!this.isRemoteClosed) this.#sender.allowMore(this);
  }

  reset(code: ErrorCode): void {
    if (!this.isLocalClosed || !this.isRemoteClosed) this.#sender.reset(this, code);
  }
}
