/** The lines of a file or of standard input, plain or gzip (told by its first bytes), in batches: a promise for each line would cost more than its reading. */
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { SluiceError } from "sluice";

/** Longer lines are cut: no request line is that long, and a file without line ends must not fill the memory. */
const MOST_LINE_LENGTH = 65_536;
const GZIP = Buffer.from([0x1f, 0x8b]);

export async function* readLines(file: string): AsyncGenerator<string[]> {
  const source = file === "-" ? process.stdin : createReadStream(file);
  try {
    yield* split(unpacked(source));
  } catch (error) {
    throw new SluiceError("invalid-setting", `${file}: ${whyUnreadable(error as NodeJS.ErrnoException, "logs/*.log")}`);
  } finally {
    source.destroy();
  }
}

async function* unpacked(source: Readable): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const first = await chunks.next();
  if (first.done === true) return;
  const rest = async function* (): AsyncGenerator<Buffer> {
    yield first.value;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  };
  if (!first.value.subarray(0, 2).equals(GZIP)) return yield* rest();
  const { Readable } = await import("node:stream");
  yield* Readable.from(rest()).compose(createGunzip()) as AsyncIterable<Buffer>;
}

async function* split(chunks: AsyncIterable<Buffer>): AsyncGenerator<string[]> {
  const decoder = new TextDecoder();
  let rest = "";
  let isCut = false;
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    if (isCut && lines.length > 0) {
      lines.shift();
      isCut = false;
    }
    if (rest.length > MOST_LINE_LENGTH) {
      if (!isCut) lines.push(rest.slice(0, MOST_LINE_LENGTH));
      isCut = true;
      rest = "";
    }
    if (lines.length > 0) yield lines.map(withoutReturn);
  }
  if (rest !== "" && !isCut) yield [withoutReturn(rest)];
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** `example`: how files of a folder would be named. */
export function whyUnreadable({ code, message }: NodeJS.ErrnoException, example: string): string {
  if (code === "ENOENT") return "there is no such file";
  if (code === "EISDIR") return `is a folder; name its files, such as ${example}`;
  return code === "EACCES" ? "may not be read" : message;
}
