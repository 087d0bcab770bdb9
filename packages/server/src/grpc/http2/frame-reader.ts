/** Splits a socket's bytes into frames. Buffers at most one incomplete frame plus the chunk it arrived in. */
import { ConnectionError, errorCodes, FRAME_HEADER_BYTES, MAX_FRAME_BYTES, PREFACE } from "./protocol.js";

/** Valid only during the callback: the object and its bytes are reused. */
export interface Frame {
  type: number;
  flags: number;
  streamId: number;
  /** The payload is `bytes` between `from` and `to`. */
  bytes: Buffer;
  from: number;
  to: number;
}

const NOTHING = Buffer.alloc(0);
/** A buffer larger than this, grown for one large read, is not kept. */
const KEEP_BYTES = 2 * MAX_FRAME_BYTES;

export class FrameReader {
  readonly #frame: Frame = { type: 0, flags: 0, streamId: 0, bytes: NOTHING, from: 0, to: 0 };
  readonly #onFrame: (frame: Frame) => void;
  #partial: Buffer = NOTHING;
  #partialBytes = 0;
  #hasPreface = false;
  #isStopped = false;

  constructor(onFrame: (frame: Frame) => void) {
    this.#onFrame = onFrame;
  }

  /** Whether the HTTP/2 connection preface has been read. */
  get hasPreface(): boolean {
    return this.#hasPreface;
  }

  /** Ignores all further input. */
  stop(): void {
    this.#isStopped = true;
    this.#partial = NOTHING;
    this.#partialBytes = 0;
  }

  read(chunk: Buffer): void {
    if (this.#isStopped) return;
    const joined = this.#partialBytes > 0;
    if (joined) this.#append(chunk);
    const bytes = joined ? this.#partial : chunk;
    const end = joined ? this.#partialBytes : chunk.length;
    let at = this.#skipPreface(bytes, end);
    while (this.#hasPreface && end - at >= FRAME_HEADER_BYTES && !this.#isStopped) {
      const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
      if (length > MAX_FRAME_BYTES) throw new ConnectionError(errorCodes.frameSizeError, "a frame above 16384 bytes");
      const to = at + FRAME_HEADER_BYTES + length;
      if (to > end) break;
      const frame = this.#frame;
      frame.type = bytes[at + 3]!;
      frame.flags = bytes[at + 4]!;
      frame.streamId = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
      frame.bytes = bytes;
      frame.from = at + FRAME_HEADER_BYTES;
      frame.to = to;
      at = to;
      this.#onFrame(frame);
    }
    if (!this.#isStopped) this.#keep(bytes, at, end);
  }

  /** Returns the offset of the first frame; 0 while the preface is incomplete. */
  #skipPreface(bytes: Buffer, end: number): number {
    if (this.#hasPreface) return 0;
    const length = Math.min(end, PREFACE.length);
    if (bytes.compare(PREFACE, 0, length, 0, length) !== 0) {
      throw new ConnectionError(errorCodes.protocolError, "the connection does not begin with HTTP/2's preface");
    }
    this.#hasPreface = length === PREFACE.length;
    return this.#hasPreface ? length : 0;
  }

  #append(chunk: Buffer): void {
    const needed = this.#partialBytes + chunk.length;
    if (needed > this.#partial.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#partial.length));
      this.#partial.copy(larger, 0, 0, this.#partialBytes);
      this.#partial = larger;
    }
    chunk.copy(this.#partial, this.#partialBytes);
    this.#partialBytes = needed;
  }

  #keep(bytes: Buffer, from: number, to: number): void {
    this.#partialBytes = to - from;
    if (from === to) {
      if (this.#partial.length > KEEP_BYTES) this.#partial = NOTHING;
    } else if (bytes === this.#partial) {
      if (from > 0) bytes.copyWithin(0, from, to);
    } else {
      if (this.#partial.length < to - from) this.#partial = Buffer.allocUnsafe(Math.max(1_024, to - from));
      bytes.copy(this.#partial, 0, from, to);
    }
  }
}
