/**
 * What a connection sends. Frames of one turn of the event loop leave together, in one write: under load a turn has many answers, and
 * system calls are the largest cost of each.
 */
import type { Socket } from "node:net";
import { FRAME_HEADER_BYTES } from "./protocol.js";

const SMALL_BYTES = 512;
/** A turn with more than this is rare; its buffer is not the measure for the next. */
const LARGE_BYTES = 65_536;
/** Waiting in the process for a peer that does not read. */
const MOST_UNSENT_BYTES = 2 ** 20;

export class Output {
  readonly #socket: Socket;
  readonly #onRoom: () => void;
  #buffer: Buffer = Buffer.allocUnsafe(SMALL_BYTES);
  #length = 0;
  #isScheduled = false;

  /** `onRoom`: the socket has taken what was sent. */
  constructor(socket: Socket, onRoom: () => void = () => undefined) {
    this.#socket = socket;
    this.#onRoom = onRoom;
    socket.on("drain", onRoom);
  }

  /** Whether the peer reads so slowly that nothing more should be read from it (backpressure). */
  get isBehind(): boolean {
    return this.#socket.writableLength + this.#length > MOST_UNSENT_BYTES;
  }

  /** Where a frame's payload of so many bytes is to be written: `buffer` from the returned offset on. */
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

  /** Changes with each frame. */
  get buffer(): Buffer {
    return this.#buffer;
  }

  flush(): void {
    this.#isScheduled = false;
    if (this.#length === 0) return;
    const bytes = this.#buffer.subarray(0, this.#length);
    const size = Math.min(Math.max(SMALL_BYTES, this.#length), LARGE_BYTES);
    this.#length = 0;
    this.#buffer = Buffer.allocUnsafe(size);
    // A write that the kernel takes at once is not followed by "drain".
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
