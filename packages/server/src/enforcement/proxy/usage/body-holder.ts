/**
 * Holds a request's body until the request is decided: bounded for one, and for all together.
 * In: a request whose body nobody has read. Out: the body's bytes, or a ServiceError (413, 503).
 */
import type { IncomingMessage } from "node:http";
import { ServiceError } from "../../../errors.js";

/** A body this small is always taken: connections, not bodies, are what bounds these. */
const SMALL_BYTES = 64 * 1024;
/** So many of the largest bodies may be held at the same time. */
const LARGEST_BODIES = 8;

export interface HeldBody {
  readonly bytes: number;
  /** The bytes, until they are let go. */
  blocks(): readonly Buffer[];
  /** Forgets the bytes; again: nothing happens. */
  letGo(): void;
}

export class BodyHolder {
  readonly #limitBytes: number;
  /** Bytes of bodies beyond the small ones. */
  #heldBytes = 0;

  constructor({ limitBytes }: { limitBytes: number }) {
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Undefined if the client went away. `onChunk` may throw; nothing more is read then. */
  async hold(client: IncomingMessage, onChunk: (chunk: Buffer) => void): Promise<HeldBody | undefined> {
    const announced = Number(client.headers["content-length"] ?? 0);
    if (announced > this.#limitBytes) throw this.#tooLarge();
    let blocks = new Blocks();
    let bytes = 0;
    let counted = 0;
    const letGo = (): void => {
      this.#heldBytes -= counted;
      counted = 0;
      blocks = new Blocks();
    };
    try {
      // Not destroyed where the loop is left: the refusal has to be sent on the same connection.
      for await (const chunk of client.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > this.#limitBytes) throw this.#tooLarge();
        if (bytes > SMALL_BYTES) {
          this.#heldBytes += bytes - counted;
          counted = bytes;
          if (this.#heldBytes > this.#limitBytes * LARGEST_BODIES) throw tooManyBodies();
        }
        blocks.add(chunk);
        onChunk(chunk);
      }
    } catch (error) {
      letGo();
      if (isGone(error)) return undefined;
      throw error;
    }
    return { bytes, blocks: () => blocks.all(), letGo };
  }

  #tooLarge(): ServiceError {
    return new ServiceError("body-too-large", `body: expected at most ${this.#limitBytes} bytes`);
  }
}

const BLOCK_BYTES = 64 * 1024;

/** Bytes in blocks of one size. A body that comes byte by byte would cost a hundred bytes of bookkeeping for each if its pieces were kept. */
class Blocks {
  readonly #full: Buffer[] = [];
  #open = Buffer.allocUnsafe(0);
  #used = 0;

  add(chunk: Buffer): void {
    let from = 0;
    while (from < chunk.length) {
      if (this.#used === this.#open.length) this.#grow(chunk.length - from);
      const copied = chunk.copy(this.#open, this.#used, from);
      this.#used += copied;
      from += copied;
    }
  }

  all(): Buffer[] {
    return this.#used === 0 ? [] : [...this.#full, this.#open.subarray(0, this.#used)];
  }

  /** The first block is as large as what came: most bodies are one piece. */
  #grow(bytes: number): void {
    if (this.#used > 0) this.#full.push(this.#open);
    this.#open = Buffer.allocUnsafe(this.#used === 0 ? Math.min(bytes, BLOCK_BYTES) : BLOCK_BYTES);
    this.#used = 0;
  }
}

function tooManyBodies(): ServiceError {
  return new ServiceError("too-many-bodies", "the bodies of other requests take up the memory that there is for them");
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ECONNRESET" || code === "ERR_STREAM_PREMATURE_CLOSE";
}
