/**
 * Buffers a request's body until the request is decided, bounded per body and in total.
 * In: a request whose body has not been read. Out: the body's bytes, or a ServiceError (413, 503).
 */
import type { IncomingMessage } from "node:http";
import { ServiceError } from "../../../errors.js";

/** A body this small is always accepted: these are bounded by the number of connections. */
const SMALL_BYTES = 64 * 1024;
/** Total memory, in bodies of maximum size. */
const LARGEST_BODIES = 8;

export interface HeldBody {
  readonly bytes: number;
  /** The bytes, until they are released. */
  blocks(): readonly Buffer[];
  /** Releases the bytes; idempotent. */
  letGo(): void;
}

export class BodyHolder {
  readonly #limitBytes: number;
  /** Bytes of all bodies other than small ones. */
  #heldBytes = 0;

  constructor({ limitBytes }: { limitBytes: number }) {
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Undefined if the client disconnected. `onChunk` may throw, which stops reading. */
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
      // Keep the connection when leaving the loop: a refusal is sent on it.
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

/**
 * Copies bytes into blocks of one size: keeping each piece of a body that arrives byte by byte would cost a hundred bytes of overhead per
 * byte.
 */
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

  /** The first block is as large as the first piece, since most bodies come in one. */
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
