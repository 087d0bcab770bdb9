/**
 * Keeps reading an answer briefly after its client has disconnected. Vendors report usage at the end of an answer: a client that
 * disconnects just before would pay for the text it received, but neither for context that the vendor added to the prompt nor for hidden
 * reasoning. Bounded in time, bytes and number, since the operator pays for output that nobody reads
 * (docs/decisions/0043-an-abandoned-answer-is-read-on-for-a-moment.md).
 */
import type { IncomingMessage } from "node:http";
import type { AnswerMeter } from "./answer-meter.js";

/** The final events of a stream are small, except those of the Responses API, which repeat the answer. */
const MOST_BYTES = 256 * 1024;
/** Concurrent drains. Beyond this, answers are cut as soon as their clients disconnect. */
const MOST_ANSWERS = 256;

interface Abandoned {
  readonly answer: IncomingMessage;
  readonly meter: AnswerMeter;
}

export class AnswerDrain {
  readonly #longestMs: number;
  #answers = 0;

  constructor({ longestMs }: { longestMs: number }) {
    this.#longestMs = longestMs;
  }

  /** Resolves with whether the answer arrived completely, once it is over or was cut at a bound. Undefined: it is not drained. */
  drain({ answer, meter }: Abandoned): Promise<boolean> | undefined {
    const isOver = answer.destroyed || meter.destroyed || meter.readableEnded;
    if (isOver || !meter.reader.mayReport || this.#longestMs === 0 || this.#answers === MOST_ANSWERS) return undefined;
    this.#answers++;
    return new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#answers--;
        answer.destroy();
        resolve(meter.readableEnded);
      };
      const timer = setTimeout(() => meter.destroy(), this.#longestMs);
      let bytes = 0;
      meter.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MOST_BYTES) meter.destroy();
      });
      meter.once("close", finish);
      // The client no longer reads.
      meter.unpipe();
      meter.resume();
    });
  }
}
