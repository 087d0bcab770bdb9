/**
 * Decodes a compressed answer. The decoder is chosen at the first byte: an answer without a body needs none, even if its headers name a
 * coding, and "deflate" means zlib's format for some servers and raw deflate for others (RFC 9110, section 8.4.1.2).
 * In: the body as received. Out: decoded bytes, with backpressure: a small body may decode to a very large one (zip bomb).
 */
import { Duplex, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";

export type Coding = "gzip" | "deflate" | "br";

export class DecodedBody extends Duplex {
  readonly #coding: Coding;
  #decoder: Transform | undefined;

  constructor(coding: Coding) {
    super();
    this.#coding = coding;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (chunk.length === 0) {
      done();
      return;
    }
    this.#decoder ??= this.#start(chunk[0]!);
    this.#decoder.write(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#decoder === undefined) this.push(null);
    else this.#decoder.end();
    done();
  }

  override _read(): void {
    this.#decoder?.resume();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#decoder?.destroy();
    done(error);
  }

  #start(firstByte: number): Transform {
    const decoder = decoderOf(this.#coding, firstByte);
    decoder.on("data", (decoded: Buffer) => {
      if (!this.push(decoded)) decoder.pause();
    });
    decoder.once("end", () => this.push(null));
    decoder.once("error", (error) => this.destroy(error));
    return decoder;
  }
}

/** A zlib header has the method, 8, in the low half of its first byte; no encoder starts a raw deflate stream like that. */
const ZLIB_METHOD = 0x08;

function decoderOf(coding: Coding, firstByte: number): Transform {
  if (coding === "gzip") return createGunzip();
  if (coding === "br") return createBrotliDecompress();
  return (firstByte & 0x0f) === ZLIB_METHOD ? createInflate() : createInflateRaw();
}
