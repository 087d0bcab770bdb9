/**
 * The request body of a call: reassembles messages from DATA frames, one at a time, within the budget for incomplete messages. Backpressure
 * uses HTTP/2 flow control: the client gets more window once everything it sent has been taken, or once its incomplete message has room in
 * the budget.
 *
 * So a call holds at most its window (64 KiB) plus one message that has started and has a reservation.
 */
import type { CallOptions } from "./call.js";
import { type Message, MessageReader, UnreadableMessage } from "./message-reader.js";
import { grpcCodes } from "./statuses.js";
import { WaitingBytes } from "./waiting-bytes.js";

/** Batch window updates: each one is a frame too. */
const ALLOW_FROM_BYTES = 16_384;

export class CallBody {
  readonly #options: CallOptions;
  readonly #reader: MessageReader;
  /** Bytes behind a message that has not been taken yet. */
  readonly #waiting = new WaitingBytes();
  #release: (() => void) | undefined;
  #isPaused = false;

  constructor(options: CallOptions) {
    this.#options = options;
    this.#reader = new MessageReader({
      mostBytes: options.caller.mostMessageBytes,
      encoding: options.head.get("grpc-encoding"),
    });
  }

  /** Whether everything received has been taken. */
  get isEmpty(): boolean {
    return !this.#reader.hasBegun && this.#waiting.length === 0;
  }

  /** Throws `UnreadableMessage`. */
  read(bytes: Buffer): void {
    const at = this.#waiting.length > 0 ? 0 : this.#parse(bytes);
    if (at === bytes.length) return;
    if (!this.#options.method.requestStream) throw moreThanOne();
    this.#waiting.add(bytes.subarray(at));
  }

  /** The next complete message, if there is one. Throws `UnreadableMessage`. */
  next(): Message | undefined {
    if (this.#waiting.length > 0) this.#waiting.skip(this.#parse(this.#waiting.unread));
    const message = this.#reader.take();
    if (message !== undefined) this.release();
    return message;
  }

  /** Opens the client's window, unless a message waits to be taken or the current message has no room in the budget. */
  allowMore(): void {
    const { stream } = this.#options;
    if (this.#isPaused || this.#reader.hasMessage || this.#waiting.length > 0) return;
    if (stream.owedBytes >= ALLOW_FROM_BYTES) stream.allowMore();
  }

  /** Releases the reservation. */
  release(): void {
    this.#release?.();
    this.#release = undefined;
    this.#isPaused = false;
  }

  #parse(bytes: Buffer): number {
    const at = this.#reader.read(bytes);
    const { missing } = this.#reader;
    if (missing > 0 && this.#release === undefined) this.#reserve(missing);
    return at;
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

export function moreThanOne(): UnreadableMessage {
  return new UnreadableMessage(grpcCodes.invalidArgument, "more than one message");
}
