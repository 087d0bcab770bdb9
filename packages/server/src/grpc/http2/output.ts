/**
 * A connection's write buffer. All frames of one event-loop turn go out in one write: under load a turn has many responses, and the write
 * system call dominates the cost of each.
 */
import type { Socket } from "node:net";
import { FRAME_HEADER_BYTES } from "./protocol.js";

const SMALL_BYTES = 512;
/** Larger turns are rare, so the next buffer is not sized after them. */
const LARGE_BYTES = 65_536;
/** Unsent bytes buffered in the process before the peer counts as a slow reader. */
const MOST_UNSENT_BYTES = 2 ** 20;

export class Output {
  readonly #socket: Socket;
  readonly #onRoom: () => void;
  #buffer: Buffer = Buffer.allocUnsafe(SMALL_BYTES);
  #length = 0;
  #isScheduled = false;
  #writtenBytes = 0;

  /** `onRoom` is called when the socket has accepted the buffered output. */
  constructor(socket: Socket, onRoom: () => void = () => undefined) {
    this.#socket = socket;
    this.#onRoom = onRoom;
    socket.on("drain", onRoom);
  }

  /** Whether the peer is a slow reader, so that we should stop reading from it (backpressure). */
  get isBehind(): boolean {
    return this.#socket.writableLength + this.#length > MOST_UNSENT_BYTES;
  }

  /** Bytes that the socket has taken so far; undefined if none wait for it. */
  get takenBytes(): number | undefined {
    const { writableLength } = this.#socket;
    return writableLength === 0 ? undefined : this.#writtenBytes - writableLength;
  }

  /** Starts a frame. Returns the offset in `buffer` at which the caller writes the payload. */
  frame(type: number, flags: number, streamId: number, payloadBytes: number): number {
    const at = this.#length;
    const end = at + FRAME_HEADER_BYTES + payloadBytes;
    if (end > this.#buffer.length) this.#grow(end);
    const buffer = this.#buffer;
    buffer[at] = payloadBytes >> 16;
    buffer[at + 1] = payloadBytes >> 8;
    buffer[at + 2] = payloadBytes;
    buffer[at + 3] = type;
    buffer[at + 4] = flags;
    buffer.writeUInt32BE(streamId, at + 5);
    this.#length = end;
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(flush, this);
    }
    return at + FRAME_HEADER_BYTES;
  }

  /** Reallocated as frames are added: read it again after each `frame` call. */
  get buffer(): Buffer {
    return this.#buffer;
  }

  flush(): void {
    this.#isScheduled = false;
    if (this.#length === 0) return;
    const bytes = this.#buffer.subarray(0, this.#length);
    const size = Math.min(Math.max(SMALL_BYTES, this.#length), LARGE_BYTES);
    this.#writtenBytes += this.#length;
    this.#length = 0;
    this.#buffer = Buffer.allocUnsafe(size);
    // "drain" is not emitted after a write that the kernel accepts at once.
    if (this.#socket.writable && this.#socket.write(bytes)) this.#onRoom();
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

function flush(output: Output): void {
  output.flush();
}
