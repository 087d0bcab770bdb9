/**
 * The sending half of a connection: frames, within the peer's windows (flow control, RFC 9113, section 5.2). Data that does not fit waits
 * at its stream, up to a bound.
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

/** Bounds for data waiting for window: over all streams of a connection, and over all connections of a server. */
const MOST_WAITING_BYTES = 8 * 2 ** 20;
const MOST_WAITING_IN_ALL = 64 * 2 ** 20;
const LAST = { isLast: true } as const;
const LAST_NOT = { isLast: false } as const;

/** Data waiting for windows, over several connections, and how many of them have some. */
export class WaitingData {
  bytes = 0;
  connections = 0;
}

interface SenderEvents {
  /** The stream's last frame has been sent. */
  onLocalClosed(stream: Stream): void;
  onReset(stream: Stream): void;
  /** Too much data waits for window that the peer does not grant. */
  onOverflow(): void;
}

export class Sender {
  readonly #output: Output;
  readonly #events: SenderEvents;
  /**
   * Streams blocked on the connection window, in the order in which they blocked. Streams blocked on their own window are not in here:
   * otherwise each WINDOW_UPDATE of 13 bytes for the connection would walk up to a thousand of them.
   */
  readonly #blocked = new Set<Stream>();
  readonly #all: WaitingData;
  #waitingBytes = 0;
  #window = INITIAL_WINDOW;
  /** Initial window for new streams. */
  initialWindow = INITIAL_WINDOW;

  constructor(output: Output, events: SenderEvents, all = new WaitingData()) {
    this.#output = output;
    this.#events = events;
    this.#all = all;
  }

  /**
   * Writes all three frames at once if the windows have room, as they nearly always do; the message is then copied straight into the output
   * buffer.
   */
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
    this.#countWaiting(bytes.length);
    if (stream.unsent.length === 1) this.#pump(stream);
    if (stream.unsent.length > 0) stream.unsentSinceMonotonicMs ??= performance.now();
    if (this.#isOverflowing) this.#events.onOverflow();
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

  /** Widens the connection window. */
  widen(bytes: number): void {
    const wasShut = this.#window <= 0;
    this.#window += bytes;
    if (this.#window > MAX_WINDOW) throw new ConnectionError(errorCodes.flowControlError, "a window above 2^31-1");
    // If the window was open, the waiting streams wait for their own windows.
    if (wasShut) this.#pumpAll();
  }

  /** Widens or narrows a stream's window. Returns false if it exceeds the maximum. */
  widenStream(stream: Stream, bytes: number): boolean {
    stream.sendWindow += bytes;
    if (stream.sendWindow > MAX_WINDOW) return false;
    if (stream.unsent.length > 0) this.#pumpWaiting(stream);
    return true;
  }

  /** Drops data that waits to be sent. */
  forget(stream: Stream): void {
    for (const unsent of stream.unsent) if ("data" in unsent) this.#countWaiting(-unsent.data.length);
    stream.unsent = [];
    stream.unsentSinceMonotonicMs = undefined;
    this.#blocked.delete(stream);
  }

  /** Whole messages, since each is held in memory until its last byte is sent. */
  #countWaiting(bytes: number): void {
    const had = this.#waitingBytes > 0;
    this.#waitingBytes += bytes;
    this.#all.bytes += bytes;
    const has = this.#waitingBytes > 0;
    if (has !== had) this.#all.connections += has ? 1 : -1;
  }

  /** Beyond the bound over all connections, those end that have more than a fair share of it. */
  get #isOverflowing(): boolean {
    if (this.#waitingBytes > MOST_WAITING_BYTES) return true;
    const { bytes, connections } = this.#all;
    return bytes > MOST_WAITING_IN_ALL && this.#waitingBytes > MOST_WAITING_IN_ALL / connections;
  }

  #pumpAll(): void {
    for (const stream of this.#blocked) {
      if (this.#window <= 0) return;
      this.#pumpWaiting(stream);
    }
  }

  #pumpWaiting(stream: Stream): void {
    this.#pump(stream);
    if (stream.unsent.length > 0 || stream.isLocalClosed) return;
    const { onSent } = stream;
    stream.onSent = undefined;
    onSent?.();
  }

  #pump(stream: Stream): void {
    for (let unsent = stream.unsent[0]; unsent !== undefined; unsent = stream.unsent[0]) {
      if ("trailers" in unsent) {
        this.headers(stream, unsent.trailers, LAST);
        this.#close(stream);
        return;
      }
      const left = unsent.data.length - unsent.from;
      // SETTINGS can make a window negative (section 6.9.2).
      const room = Math.max(0, Math.min(stream.sendWindow, this.#window));
      const length = Math.min(left, room, MAX_FRAME_BYTES);
      if (length === 0 && left > 0) {
        if (stream.sendWindow > 0) this.#blocked.add(stream);
        else this.#blocked.delete(stream);
        return;
      }
      const ends = unsent.isLast && length === left;
      const at = this.#output.frame(frameTypes.data, ends ? flags.endStream : 0, stream.id, length);
      unsent.data.copy(this.#output.buffer, at, unsent.from, unsent.from + length);
      unsent.from += length;
      stream.sendWindow -= length;
      this.#window -= length;
      if (length === left) {
        stream.unsent.shift();
        this.#countWaiting(-unsent.data.length);
      }
      if (ends) {
        this.#close(stream);
        return;
      }
    }
    stream.unsentSinceMonotonicMs = undefined;
    this.#blocked.delete(stream);
  }

  /** The stream's last frame has been sent: drop anything queued after it. */
  #close(stream: Stream): void {
    this.forget(stream);
    this.#events.onLocalClosed(stream);
  }
}
