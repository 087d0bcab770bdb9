/**
 * Cuts the body of a call into messages: a flag, four bytes of length, the message (gRPC over HTTP/2, "Length-Prefixed-Message").
 * A message that is whole in one frame is handed on without a copy.
 */
import { gunzipSync, inflateSync } from "node:zlib";
import { PREFIX_BYTES } from "./message-frame.js";
import { type GrpcStatus, grpcCodes } from "./statuses.js";

const FIRST_BYTES = 1_024;

/** Why a body cannot be read. */
export class UnreadableMessage extends Error {
  readonly status: GrpcStatus;

  constructor(code: number, details: string) {
    super(details);
    this.status = { code, details };
  }
}

interface MessageReaderOptions {
  readonly mostBytes: number;
  /** Of messages whose flag says so. */
  readonly encoding: string | undefined;
  /** The bytes are valid during the call. */
  readonly onMessage: (message: Buffer) => void;
}

export class MessageReader {
  readonly #options: MessageReaderOptions;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  /** Of the present message: what has come, in a buffer that grows with it, for a length is easily claimed. */
  #message: Buffer | undefined;
  #messageBytes = 0;
  #length = 0;

  constructor(options: MessageReaderOptions) {
    this.#options = options;
  }

  /** Whether a message has begun and is not whole. */
  get isWithin(): boolean {
    return this.#prefixBytes > 0 || this.#message !== undefined;
  }

  /** Bytes of the present message that have not come, as far as its length is known. */
  get missing(): number {
    return this.#message === undefined ? 0 : this.#length - this.#messageBytes;
  }

  /** Throws `UnreadableMessage`. */
  read(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#message !== undefined) at += this.#fill(bytes, at);
      else if (this.#prefixBytes === 0 && bytes.length - at >= PREFIX_BYTES) at += this.#begin(bytes, at);
      else {
        this.#prefix[this.#prefixBytes++] = bytes[at++]!;
        if (this.#prefixBytes < PREFIX_BYTES) continue;
        this.#prefixBytes = 0;
        this.#begin(this.#prefix, 0);
      }
    }
  }

  /** Reads a prefix, and the message behind it if it is whole. Returns how far it came. */
  #begin(bytes: Buffer, at: number): number {
    const isCompressed = this.#isCompressed(bytes[at]!);
    const length = bytes.readUInt32BE(at + 1);
    if (length > this.#options.mostBytes) {
      throw new UnreadableMessage(
        grpcCodes.resourceExhausted,
        `a message of ${length} bytes: expected at most ${this.#options.mostBytes}`,
      );
    }
    const from = at + PREFIX_BYTES;
    if (from + length <= bytes.length) {
      this.#hand(bytes.subarray(from, from + length), isCompressed);
      return PREFIX_BYTES + length;
    }
    this.#prefix[0] = isCompressed ? 1 : 0;
    this.#message = Buffer.allocUnsafe(Math.min(length, FIRST_BYTES));
    this.#messageBytes = 0;
    this.#length = length;
    return PREFIX_BYTES;
  }

  #fill(bytes: Buffer, at: number): number {
    const taken = Math.min(bytes.length - at, this.missing);
    const message = this.#withRoom(this.#messageBytes + taken);
    bytes.copy(message, this.#messageBytes, at, at + taken);
    this.#messageBytes += taken;
    if (this.missing === 0) {
      this.#message = undefined;
      this.#hand(message.subarray(0, this.#length), this.#prefix[0] === 1);
    }
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

  #isCompressed(flag: number): boolean {
    if (flag === 0) return false;
    const { encoding } = this.#options;
    if (flag === 1 && encoding !== undefined && encoding !== "identity") return true;
    throw new UnreadableMessage(grpcCodes.internal, `a message with flag ${flag}: expected 0, or 1 and grpc-encoding`);
  }

  #hand(message: Buffer, isCompressed: boolean): void {
    this.#options.onMessage(isCompressed ? this.#inflate(message) : message);
  }

  #inflate(message: Buffer): Buffer {
    const { encoding, mostBytes } = this.#options;
    const inflate = encoding === "gzip" ? gunzipSync : encoding === "deflate" ? inflateSync : undefined;
    if (inflate === undefined) {
      throw new UnreadableMessage(grpcCodes.unimplemented, "grpc-encoding: expected identity, deflate or gzip");
    }
    try {
      return inflate(message, { maxOutputLength: mostBytes });
    } catch {
      throw new UnreadableMessage(
        grpcCodes.resourceExhausted,
        `a compressed message that cannot be read: expected ${encoding}, at most ${mostBytes} bytes`,
      );
    }
  }
}
