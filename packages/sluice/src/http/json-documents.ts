/**
 * The JSON documents of a body, by its media type: one document, one per line, or one per server-sent event. In: the body's bytes as they
 * arrive. Out: the scanner's reports. Buffers no part of the body, whatever its size.
 */
import { EventStream } from "./event-stream.js";
import type { JsonScanner } from "./json-scanner.js";

/** `unread`: not JSON, or in an encoding that is not decoded. */
export type BodyKind = "json" | "events" | "lines" | "unread";

export function bodyKind(contentType: string): BodyKind {
  const type = contentType.split(";", 1)[0]!.trim().toLowerCase();
  if (type === "text/event-stream") return "events";
  if (type === "application/x-ndjson" || type === "application/jsonl") return "lines";
  return type === "application/json" || type.endsWith("+json") ? "json" : "unread";
}

interface Documents {
  readonly kind: BodyKind;
  readonly scanner: JsonScanner;
  /** An event ended before byte `next` of the chunk. `byReturn`: it ended with a CR, and a following LF belongs to it. */
  readonly onEvent?: (next: number, byReturn: boolean) => void;
  /** A document of this many bytes ended. The end mark of OpenAI's streams counts as JSON. */
  readonly onDocument?: (bytes: number, isJson: boolean) => void;
}

const LF = 0x0a;
/** Ends OpenAI's streams, as a separate event. */
const END_MARK = Buffer.from("[DONE]");

export class JsonDocuments {
  readonly #kind: BodyKind;
  readonly #scanner: JsonScanner;
  readonly #events: EventStream;
  readonly #onDocument: Documents["onDocument"];
  /** Bytes of the current document so far, and how many of them match the end mark. */
  #bytes = 0;
  #marked = 0;
  #strayBytes = 0;

  constructor({ kind, scanner, onEvent, onDocument }: Documents) {
    this.#kind = kind;
    this.#scanner = scanner;
    this.#onDocument = onDocument;
    this.#events = new EventStream({
      data: (chunk, from, to) => this.#read(chunk, from, to),
      end: (next, byReturn) => {
        this.#endDocument();
        onEvent?.(next, byReturn);
      },
      stray: (bytes) => {
        this.#strayBytes += bytes;
      },
    });
  }

  /** Bytes that do not belong to an event stream. */
  get strayBytes(): number {
    return this.#strayBytes;
  }

  /** Bytes so far of a document that has turned out not to be JSON. */
  get brokenBytes(): number {
    return this.#scanner.mistake === undefined || this.#isMark() ? 0 : this.#bytes;
  }

  push(chunk: Buffer): void {
    if (this.#kind === "events") this.#events.push(chunk);
    else if (this.#kind === "json") this.#read(chunk, 0, chunk.length);
    else if (this.#kind === "lines") this.#pushLines(chunk);
  }

  /** Call after the last byte of a complete body. A document that is cut short is not JSON. */
  end(): void {
    if (this.#bytes > 0) this.#scanner.end();
  }

  #pushLines(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, from)) {
      this.#read(chunk, from, end);
      this.#endDocument();
      from = end + 1;
    }
    this.#read(chunk, from, chunk.length);
  }

  #read(chunk: Buffer, from: number, to: number): void {
    for (let i = from; i < to && this.#bytes + i - from === this.#marked && this.#marked < END_MARK.length; i++)
      if (chunk[i] === END_MARK[this.#marked]) this.#marked++;
    this.#bytes += to - from;
    this.#scanner.push(chunk, from, to);
  }

  #endDocument(): void {
    const scanner = this.#scanner;
    // This also ends a number that is the whole document.
    const isJson = scanner.end() || this.#isMark();
    this.#onDocument?.(this.#bytes, isJson);
    this.#bytes = 0;
    this.#marked = 0;
    scanner.reset();
  }

  #isMark(): boolean {
    return this.#bytes === END_MARK.length && this.#marked === END_MARK.length;
  }
}
