/** The lines of a file or of standard input, plain or gzip (told by its first bytes), in batches: a promise for each line would cost more than its reading. */
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { SluiceError } from "sluice";

/** Longer lines are cut: no line of a log or a recording is that long, and a file without line ends must not fill the memory. */
const MOST_LINE_LENGTH = 2 ** 20;
const GZIP = Buffer.from([0x1f, 0x8b]);

/** `onTorn`: the file is compressed and ends early or is damaged; what could be read of it has been. */
export async function* readLines(file: string, onTorn: (why: string) => void = () => {}): AsyncGenerator<string[]> {
  const source = file === "-" ? process.stdin : createReadStream(file);
  try {
    yield* split(unpacked(source, onTorn));
  } catch (error) {
    throw new SluiceError("invalid-setting", `${file}: ${whyUnreadable(error as NodeJS.ErrnoException, "logs/*.log")}`);
  } finally {
    source.destroy();
  }
}

async function* unpacked(source: Readable, onTorn: (why: string) => void): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const first = await chunks.next();
  if (first.done === true) return;
  const rest = async function* (): AsyncGenerator<Buffer> {
    yield first.value;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  };
  if (!first.value.subarray(0, 2).equals(GZIP)) return yield* rest();
  yield* gunzipped(rest(), onTorn);
}

/** What comes before a tear is read; streams put together by Node lose it, and an error of theirs ends the process. */
async function* gunzipped(chunks: AsyncIterable<Buffer>, onTorn: (why: string) => void): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
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
  for await (const chunk of chunks) {
    await until((done) => gunzip.write(chunk, () => done()));
    yield* ready;
    ready = [];
    if (failure !== undefined) break;
  }
  if (failure === undefined) await until(() => gunzip.end());
  yield* ready;
  if (failure !== undefined) onTorn(failure.message);
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
