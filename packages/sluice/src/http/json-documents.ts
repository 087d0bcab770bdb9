/**
 * The JSON documents of a body, by its media type: one, one a line, or one a server-sent event. In: the body's bytes as they come.
 * Out: the scanner's reports. Holds no part of the body, whatever its size.
 */
import { EventStream } from "./event-stream.js";
import type { JsonScanner } from "./json-scanner.js";

/** `unread`: no JSON, or in a coding that is not decoded. */
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
  /** An event ended before byte `next` of the chunk. `byReturn`: by a CR, to which a following LF belongs. */
  readonly onEvent?: (next: number, byReturn: boolean) => void;
}

const LF = 0x0a;

export class JsonDocuments {
  readonly #kind: BodyKind;
  readonly #scanner: JsonScanner;
  readonly #events: EventStream;

  constructor({ kind, scanner, onEvent }: Documents) {
    this.#kind = kind;
    this.#scanner = scanner;
    this.#events = new EventStream({
      data: (chunk, from, to) => scanner.push(chunk, from, to),
      end: (next, byReturn) => {
        // Ends a number that is the whole document.
        scanner.end();
        scanner.reset();
        onEvent?.(next, byReturn);
      },
    });
  }

  push(chunk: Buffer): void {
    if (this.#kind === "events") this.#events.push(chunk);
    else if (this.#kind === "json") this.#scanner.push(chunk);
    else if (this.#kind === "lines") this.#pushLines(chunk);
  }

  #pushLines(chunk: Buffer): void {
    const scanner = this.#scanner;
    let from = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, from)) {
      scanner.push(chunk, from, end);
      scanner.end();
      scanner.reset();
      from = end + 1;
    }
    scanner.push(chunk, from);
  }
}
