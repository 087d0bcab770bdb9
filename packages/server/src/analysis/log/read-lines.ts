/**
 * Reads the lines of a file or of standard input, plain or gzip (detected by its first bytes), in batches, because a promise per line would
 * cost more than reading it. A batch holds bytes; a line is decoded on demand.
 */
import { isAscii } from "node:buffer";
import { open } from "node:fs/promises";
import { createGunzip } from "node:zlib";
import { SluiceError } from "sluice";

/** Longer lines are truncated: no real log or recording has them, and a file without line ends must not fill the memory. */
const MOST_LINE_BYTES = 2 ** 20;
const NEW_LINE = 0x0a;
const RETURN = 0x0d;
const EMPTY = Buffer.alloc(0);
/** Large enough to amortise the cost of a chunk (a promise, a read). */
const CHUNK_BYTES = 2 ** 18;
const PACKED_BYTES = 2 ** 14;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const GZIP = Buffer.from([0x1f, 0x8b]);

/** Decoded to strings. */
export async function* readLines(file: string): AsyncGenerator<string[]> {
  for await (const batch of readLineBatches(file)) yield batch.texts();
}

/** `onTorn`: the compressed file is truncated or damaged; everything readable has been read. */
export async function* readLineBatches(
  file: string,
  onTorn: (why: string) => void = () => {},
): AsyncGenerator<LineBatch> {
  const source = file === "-" ? stdinChunks() : fileChunks(file);
  try {
    yield* split(unpacked(source, onTorn));
  } catch (error) {
    throw new SluiceError("invalid-setting", `${file}: ${whyUnreadable(error as NodeJS.ErrnoException, "logs/*.log")}`);
  } finally {
    await source.return(undefined);
  }
}

async function* stdinChunks(): AsyncGenerator<Buffer> {
  try {
    yield* process.stdin as AsyncIterable<Buffer>;
  } finally {
    process.stdin.destroy();
  }
}

/** Reuses one buffer, valid until the next chunk is requested: allocating one each would cost as much as the reading. */
async function* fileChunks(file: string): AsyncGenerator<Buffer> {
  const handle = await open(file);
  const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  try {
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, null);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

async function* unpacked(chunks: AsyncGenerator<Buffer>, onTorn: (why: string) => void): AsyncGenerator<Buffer> {
  const first = await chunks.next();
  if (first.done === true) return;
  const rest = async function* (): AsyncGenerator<Buffer> {
    yield first.value;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  };
  if (!first.value.subarray(0, 2).equals(GZIP)) return yield* rest();
  yield* gunzipped(rest(), onTorn);
}

/** Yields everything before the damage; Node's stream pipelines would lose it, and their error would crash the process. */
async function* gunzipped(chunks: AsyncIterable<Buffer>, onTorn: (why: string) => void): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  let ready: Buffer[] = [];
  let failure: Error | undefined;
  let settle = (): void => {};
  gunzip.on("data", (chunk: Buffer) => ready.push(chunk));
  gunzip.on("error", (error) => {
    failure = error;
  });
  gunzip.on("close", () => settle());
  const until = (begin: (done: () => void) => void): Promise<void> =>
    new Promise((resolve) => {
      settle = resolve;
      begin(resolve);
    });
  reading: for await (const chunk of chunks) {
    // In small steps: a chunk may inflate to a thousand times its size, and the output of a write is buffered as a whole.
    for (let from = 0; from < chunk.length; from += PACKED_BYTES) {
      await until((done) => gunzip.write(chunk.subarray(from, from + PACKED_BYTES), () => done()));
      yield* ready;
      ready = [];
      if (failure !== undefined) break reading;
    }
  }
  if (failure === undefined) await until(() => gunzip.end());
  yield* ready;
  if (failure !== undefined) onTorn(failure.message);
}

/** Lines within one buffer. A batch is valid until the next one is requested, which reuses it; a `copy` is independent. */
export class LineBatch {
  bytes: Buffer;
  /** By line: start and end, without the line end. */
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  #encoding: "latin1" | "utf8" | undefined;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Reuses the batch for other lines. */
  begin(bytes: Buffer): void {
    this.bytes = bytes;
    this.starts.length = 0;
    this.ends.length = 0;
    this.#encoding = undefined;
  }

  copy(): LineBatch {
    const copied = new LineBatch(Buffer.from(this.bytes));
    for (let line = 0; line < this.count; line++) {
      copied.starts.push(this.starts[line]!);
      copied.ends.push(this.ends[line]!);
    }
    return copied;
  }

  get count(): number {
    return this.starts.length;
  }

  add(from: number, to: number): void {
    // Strip the CR of a Windows line end.
    const end = to > from && this.bytes[to - 1] === RETURN ? to - 1 : to;
    this.starts.push(from);
    this.ends.push(Math.min(end, from + MOST_LINE_BYTES));
  }

  /** Decodes a line on its own: a substring of a whole decoded chunk would keep the chunk in memory for as long as any table holds it. */
  text(line: number): string {
    // Most logs are pure ASCII, which decodes twice as fast as latin1.
    this.#encoding ??= isAscii(this.bytes) ? "latin1" : "utf8";
    return this.bytes.toString(this.#encoding, this.starts[line], this.ends[line]);
  }

  texts(): string[] {
    return this.starts.map((_, line) => this.text(line));
  }
}

/** The buffer being split: the rest of the last chunk, followed by the next. Reused for the whole file. */
class Joined {
  #room: Buffer = EMPTY;
  bytes: Buffer = EMPTY;

  /** `rest`: the tail of `bytes`. */
  join(rest: Buffer, chunk: Buffer): void {
    const length = rest.length + chunk.length;
    if (length > this.#room.length) {
      const room = Buffer.allocUnsafeSlow(length + CHUNK_BYTES);
      rest.copy(room);
      this.#room = room;
    } else rest.copy(this.#room);
    chunk.copy(this.#room, rest.length);
    this.bytes = this.#room.subarray(0, length);
  }
}

async function* split(chunks: AsyncIterable<Buffer>): AsyncGenerator<LineBatch> {
  let rest: Buffer = EMPTY;
  let isCut = false;
  let isFirst = true;
  const joined = new Joined();
  const batch = new LineBatch(EMPTY);
  for await (const chunk of chunks) {
    joined.join(rest, chunk);
    const { bytes } = joined;
    batch.begin(bytes);
    let from = isFirst ? afterByteOrderMark(bytes) : 0;
    if (bytes.length >= BYTE_ORDER_MARK.length) isFirst = false;
    for (let end = bytes.indexOf(NEW_LINE, from); end >= 0; end = bytes.indexOf(NEW_LINE, from)) {
      // The tail of a truncated line.
      if (isCut) isCut = false;
      else batch.add(from, end);
      from = end + 1;
    }
    rest = isCut ? EMPTY : bytes.subarray(from);
    if (rest.length > MOST_LINE_BYTES) {
      batch.add(from, from + MOST_LINE_BYTES);
      isCut = true;
      rest = EMPTY;
    }
    if (batch.count > 0) yield batch;
  }
  if (rest.length === 0) return;
  batch.begin(rest);
  batch.add(0, rest.length);
  yield batch;
}

function afterByteOrderMark(bytes: Buffer): number {
  return bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
}

/** `example`: how to name the files of a folder. */
export function whyUnreadable({ code, message }: NodeJS.ErrnoException, example: string): string {
  if (code === "ENOENT") return "there is no such file";
  if (code === "EISDIR") return `is a folder; name its files, such as ${example}`;
  return code === "EACCES" ? "may not be read" : message;
}
