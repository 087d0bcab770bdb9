/**
 * Reads what passes to the client: the number of bytes, and numbers at given places of JSON documents, server-sent events or JSON lines.
 * In: the response's header fields, then its bytes as they pass. Buffers none of them.
 */
import { bodyKind, JsonDocuments } from "../http/json-documents.js";
import { JsonScanner } from "../http/json-scanner.js";

interface ReadingOptions {
  /** JSON pointers without their first slash. */
  readonly paths: readonly string[];
  /** Header fields of the response, as of its first byte. */
  readonly headerOf: (name: string) => string | undefined;
}

export class ResponseReading {
  readonly #options: ReadingOptions;
  readonly #lastSteps: ReadonlySet<string>;
  /** By path: the largest number seen, because streams report running totals. */
  readonly #numbers = new Map<string, number>();
  #documents: JsonDocuments | undefined;
  #bytes = 0;

  constructor(options: ReadingOptions) {
    this.#options = options;
    this.#lastSteps = new Set(options.paths.map((path) => path.slice(path.lastIndexOf("/") + 1)));
  }

  get bytes(): number {
    return this.#bytes;
  }

  numberAt(path: string): number | undefined {
    return this.#numbers.get(path);
  }

  push(chunk: Uint8Array): void {
    if (this.#bytes === 0 && this.#options.paths.length > 0) this.#begin();
    this.#bytes += chunk.byteLength;
    this.#documents?.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
  }

  #begin(): void {
    const { headerOf, paths } = this.#options;
    // Compressed bytes are not read: the middleware must be placed where it sees them before compression.
    if ((headerOf("content-encoding") ?? "identity") !== "identity") return;
    const scanner: JsonScanner = new JsonScanner({
      literal: (text) => {
        if (!this.#lastSteps.has(scanner.lastStep)) return;
        const { path } = scanner;
        const number = paths.includes(path) ? wholeNumber(text) : undefined;
        if (number !== undefined) this.#numbers.set(path, Math.max(number, this.#numbers.get(path) ?? 0));
      },
    });
    this.#documents = new JsonDocuments({ kind: bodyKind(headerOf("content-type") ?? ""), scanner });
  }
}

/** Fractions of a unit count as one. Undefined for anything that is not a cost. */
export function wholeNumber(text: string): number | undefined {
  // Number("") is 0 and Number("0x10") is 16.
  if (!/^\d+(?:\.\d+)?$/.test(text)) return undefined;
  const number = Math.ceil(Number(text));
  return Number.isSafeInteger(number) ? number : undefined;
}
