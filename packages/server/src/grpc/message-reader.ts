/**
 * Splits a call's body into messages: a flag, four bytes of length, the message (gRPC over HTTP/2, "Length-Prefixed-Message").
 * Reads one message at a time and stops behind it; the next one is read on demand.
 */
import { PREFIX_BYTES } from "./message-frame.js";
import { type GrpcStatus, grpcCodes } from "./statuses.js";

const FIRST_BYTES = 1_024;

/** Thrown when a body cannot be read; carries the gRPC status to answer. */
export class UnreadableMessage extends Error {
  readonly status: GrpcStatus;

  constructor(code: number, details: string) {
    super(details);
    this.status = { code, details };
  }
}

/** As received, possibly compressed. */
export interface Message {
  readonly bytes: Buffer;
  readonly isCompressed: boolean;
}

interface MessageReaderOptions {
  readonly mostBytes: number;
  /** For messages with the compressed flag. */
  readonly encoding: string | undefined;
}

export class MessageReader {
  readonly #options: MessageReaderOptions;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  /** Bytes of the current message, in a buffer that grows as they arrive: a large length is cheap to claim. */
  #message: Buffer | undefined;
  #messageBytes = 0;
  #length = 0;

  constructor(options: MessageReaderOptions) {
    this.#options = options;
  }

  get hasBegun(): boolean {
    return this.#prefixBytes > 0;
  }

  /** Whether a complete message waits to be taken. */
  get hasMessage(): boolean {
    return this.#message !== undefined && this.missing === 0;
  }

  /** Bytes of the current message still to come; 0 while its length is unknown. */
  get missing(): number {
    return this.#message === undefined ? 0 : this.#length - this.#messageBytes;
  }

  /**
   * Reads up to the end of the message or of the bytes, and copies what it needs. Returns the number of bytes consumed. Throws
   * `UnreadableMessage`.
   */
  read(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length && !this.hasMessage) {
      at += this.#message === undefined ? this.#readPrefix(bytes, at) : this.#fill(bytes, at);
    }
    return at;
  }

  take(): Message | undefined {
    if (!this.hasMessage) return undefined;
    const bytes = this.#message!.subarray(0, this.#length);
    this.#message = undefined;
    this.#prefixBytes = 0;
    return { bytes, isCompressed: this.#prefix[0] === 1 };
  }

  #readPrefix(bytes: Buffer, at: number): number {
    const taken = Math.min(PREFIX_BYTES - this.#prefixBytes, bytes.length - at);
    bytes.copy(this.#prefix, this.#prefixBytes, at, at + taken);
    this.#prefixBytes += taken;
    if (this.#prefixBytes === PREFIX_BYTES) this.#begin();
    return taken;
  }

  #begin(): void {
    this.#checkFlag(this.#prefix[0]!);
    const length = this.#prefix.readUInt32BE(1);
    if (length > this.#options.mostBytes) {
      throw new UnreadableMessage(
        grpcCodes.resourceExhausted,
        `a message of ${length} bytes: expected at most ${this.#options.mostBytes}`,
      );
    }
    this.#message = Buffer.allocUnsafe(Math.min(length, FIRST_BYTES));
    this.#messageBytes = 0;
    this.#length = length;
  }

  #fill(bytes: Buffer, at: number): number {
    const taken = Math.min(bytes.length - at, this.missing);
    const message = this.#withRoom(this.#messageBytes + taken);
    bytes.copy(message, this.#messageBytes, at, at + taken);
    this.#messageBytes += taken;
    return taken;
  }

  #withRoom(bytes: number): Buffer {
    const message = this.#message!;
    if (bytes <= message.length) return message;
    const larger = Buffer.allocUnsafe(Math.min(this.#length, Math.max(bytes, 2 * message.length)));
    message.copy(larger, 0, 0, this.#messageBytes);
    this.#message = larger;
    return larger;
  }

  #checkFlag(flag: number): void {
    const { encoding } = this.#options;
    if (flag === 0 || (flag === 1 && encoding !== undefined && encoding !== "identity")) return;
    throw new UnreadableMessage(grpcCodes.internal, `a message with flag ${flag}: expected 0, or 1 and grpc-encoding`);
  }
}
