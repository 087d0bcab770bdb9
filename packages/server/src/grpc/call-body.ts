/**
 * The body of a call on its way in: messages out of frames, within the budget for those that are not whole. The client may send more once
 * its message has room (backpressure by flow control).
 */
import type { CallOptions } from "./call.js";
import { MessageReader } from "./message-reader.js";

/** Not for each frame: a window update is a frame too. */
const ALLOW_FROM_BYTES = 16_384;

export class CallBody {
  readonly #options: CallOptions;
  readonly #reader: MessageReader;
  #release: (() => void) | undefined;
  #isPaused = false;

  constructor(options: CallOptions, onMessage: (message: Buffer) => void) {
    this.#options = options;
    this.#reader = new MessageReader({
      mostBytes: options.caller.mostMessageBytes,
      encoding: options.head.get("grpc-encoding"),
      onMessage,
    });
  }

  /** Whether it ends within a message. */
  get isWithin(): boolean {
    return this.#reader.isWithin;
  }

  /** Throws `UnreadableMessage`. */
  read(bytes: Buffer): void {
    const before = this.#reader.missing;
    this.#reader.read(bytes);
    const { missing } = this.#reader;
    if (missing === 0 || before === 0) this.release();
    if (missing > 0 && before === 0) this.#reserve(missing);
    const { stream } = this.#options;
    if (this.#reader.isWithin && !this.#isPaused && stream.owedBytes >= ALLOW_FROM_BYTES) stream.allowMore();
  }

  /** Gives the budget back. */
  release(): void {
    this.#release?.();
    this.#release = undefined;
  }

  #reserve(bytes: number): void {
    const { caller, stream } = this.#options;
    this.#release = caller.budget.reserve({
      peer: caller.peer,
      bytes,
      pause: () => {
        this.#isPaused = true;
      },
      resume: () => {
        this.#isPaused = false;
        stream.allowMore();
      },
    });
  }
}
