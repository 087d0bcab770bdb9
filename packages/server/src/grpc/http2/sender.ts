/**
 * The sending half of a connection: frames, in the peer's windows (flow control, RFC 9113, section 5.2). What does not fit waits with its
 * stream, up to a bound.
 */
import { framed, PREFIX_BYTES } from "../message-frame.js";
import type { Output } from "./output.js";
import {
  ConnectionError,
  type ErrorCode,
  errorCodes,
  flags,
  frameTypes,
  INITIAL_WINDOW,
  MAX_FRAME_BYTES,
  MAX_WINDOW,
} from "./protocol.js";
import type { Stream } from "./stream.js";

/** Answers whose client gives no window, in all streams of a connection. */
const MOST_WAITING_BYTES = 8 * 2 ** 20;
const LAST = { isLast: true } as const;
const LAST_NOT = { isLast: false } as const;

interface SenderEvents {
  /** We have sent the stream's last frame. */
  onLocalClosed(stream: Stream): void;
  onReset(stream: Stream): void;
  /** Too much waits for windows that the peer does not give. */
  onOverflow(): void;
}

export class Sender {
  readonly #output: Output;
  readonly #events: SenderEvents;
  /** Streams that wait for a window, in the order in which they began to. */
  readonly #blocked = new Set<Stream>();
  #waitingBytes = 0;
  #window = INITIAL_WINDOW;
  /** Of streams to come. */
  initialWindow = INITIAL_WINDOW;

  constructor(output: Output, events: SenderEvents) {
    this.#output = output;
    this.#events = events;
  }

  /** Three frames in one go, where the windows have room, as they nearly always do. The message is copied where it is sent, not before. */
  answer(stream: Stream, headers: Buffer, message: Buffer, trailers: Buffer): void {
    const length = PREFIX_BYTES + message.length;
    this.headers(stream, headers, LAST_NOT);
    if (length > stream.sendWindow || length > this.#window || length > MAX_FRAME_BYTES) {
      this.data(stream, framed(message));
    } else {
      stream.sendWindow -= length;
      this.#window -= length;
      const at = this.#output.frame(frameTypes.data, 0, stream.id, length);
      const { buffer } = this.#output;
      buffer[at] = 0;
      buffer.writeUInt32BE(message.length, at + 1);
      buffer.set(message, at + PREFIX_BYTES);
    }
    this.end(stream, trailers);
  }

  headers(stream: Stream, block: Buffer, { isLast }: { isLast: boolean }): void {
    const marks = isLast ? flags.endHeaders | flags.endStream : flags.endHeaders;
    const at = this.#output.frame(frameTypes.headers, marks, stream.id, block.length);
    this.#output.buffer.set(block, at);
  }

  end(stream: Stream, block: Buffer): void {
    if (stream.unsent.length > 0) stream.unsent.push({ trailers: block });
    else {
      this.headers(stream, block, LAST);
      this.#events.onLocalClosed(stream);
    }
  }

  data(stream: Stream, bytes: Buffer, { isLast = false } = {}): boolean {
    stream.unsent.push({ data: bytes, from: 0, isLast });
    this.#waitingBytes += bytes.length;
    if (stream.unsent.length === 1) this.#pump(stream);
    if (this.#waitingBytes > MOST_WAITING_BYTES) this.#events.onOverflow();
    return stream.unsent.length === 0;
  }

  allowMore(stream: Stream): void {
    const { owedBytes } = stream;
    if (owedBytes === 0) return;
    stream.owedBytes = 0;
    stream.receiveWindow += owedBytes;
    this.windowUpdate(stream.id, owedBytes);
  }

  windowUpdate(streamId: number, bytes: number): void {
    const at = this.#output.frame(frameTypes.windowUpdate, 0, streamId, 4);
    this.#output.buffer.writeUInt32BE(bytes, at);
  }

  reset(stream: Stream, code: ErrorCode): void {
    this.resetId(stream.id, code);
    this.#events.onReset(stream);
  }

  resetId(streamId: number, code: ErrorCode): void {
    const at = this.#output.frame(frameTypes.rstStream, 0, streamId, 4);
    this.#output.buffer.writeUInt32BE(code, at);
  }

  /** The peer takes so much more from all streams together. */
  widen(bytes: number): void {
    const wasShut = this.#window <= 0;
    this.#window += bytes;
    if (this.#window > MAX_WINDOW) throw new ConnectionError(errorCodes.flowControlError, "a window above 2^31-1");
    // Otherwise those that wait do so for windows of their own.
    if (wasShut) this.#pumpAll();
  }

  /** The peer takes so much more, or less, from a stream. False: the window has become too large. */
  widenStream(stream: Stream, bytes: number): boolean {
    stream.sendWindow += bytes;
    if (stream.sendWindow > MAX_WINDOW) return false;
    if (stream.unsent.length > 0) this.#pump(stream);
    return true;
  }

  /** Drops what waits. */
  forget(stream: Stream): void {
    for (const unsent of stream.unsent) if ("data" in unsent) this.#waitingBytes -= unsent.data.length - unsent.from;
    stream.unsent = [];
    this.#blocked.delete(stream);
  }

  #pumpAll(): void {
    for (const stream of this.#blocked) {
      if (this.#window <= 0) return;
      this.#pump(stream);
    }
  }

  #pump(stream: Stream): void {
    for (let unsent = stream.unsent[0]; unsent !== undefined; unsent = stream.unsent[0]) {
      if ("trailers" in unsent) {
        stream.unsent.shift();
        this.headers(stream, unsent.trailers, { isLast: true });
        this.#blocked.delete(stream);
        this.#events.onLocalClosed(stream);
        return;
      }
      const length = Math.min(unsent.data.length - unsent.from, stream.sendWindow, this.#window, MAX_FRAME_BYTES);
      if (length <= 0 && unsent.data.length > 0) {
        this.#blocked.add(stream);
        return;
      }
      const ends = unsent.isLast && unsent.from + length === unsent.data.length;
      const at = this.#output.frame(frameTypes.data, ends ? flags.endStream : 0, stream.id, length);
      unsent.data.copy(this.#output.buffer, at, unsent.from, unsent.from + length);
      unsent.from += length;
      stream.sendWindow -= length;
      this.#window -= length;
      this.#waitingBytes -= length;
      if (unsent.from === unsent.data.length) stream.unsent.shift();
      if (ends) {
        this.#blocked.delete(stream);
        this.#events.onLocalClosed(stream);
        return;
      }
    }
    if (this.#blocked.delete(stream)) stream.onSent?.();
  }
}
