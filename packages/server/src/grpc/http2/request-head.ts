/**
 * The head of a request, filled field by field as its block is decoded. Only what someone reads is kept; what is wrong is noted, for the
 * block must be decoded to its end all the same: the next one builds on it.
 */
import type { HeaderField, ReadField } from "./header-field.js";

/** Decoded, as SETTINGS_MAX_HEADER_LIST_SIZE counts. A block of a few bytes may name a large field many times (an HPACK bomb). */
export const MOST_HEADER_LIST_BYTES = 65_536;

export class RequestHead {
  method: string | undefined;
  scheme: string | undefined;
  path: string | undefined;
  authority: string | undefined;
  contentLength: number | undefined;
  isMalformed = false;
  #bytes = 0;
  #hasRegular = false;
  readonly #fields: Partial<Record<ReadField, string>> = {};

  get isTooLarge(): boolean {
    return this.#bytes > MOST_HEADER_LIST_BYTES;
  }

  /** Whether it has what every request must have (RFC 9113, section 8.3.1). */
  get isRequest(): boolean {
    const { method, scheme, path } = this;
    return !this.isMalformed && method !== undefined && scheme !== undefined && path !== undefined && path !== "";
  }

  /** Whether it can stand at the end of a request: no pseudo header. */
  get isTrailer(): boolean {
    const { method, scheme, path, authority } = this;
    return !this.isMalformed && (method ?? scheme ?? path ?? authority) === undefined;
  }

  /** The first, where a field came more than once. */
  get(name: ReadField): string | undefined {
    return this.#fields[name];
  }

  add(field: HeaderField): void {
    this.#bytes += field.size;
    if (this.isTooLarge) return;
    switch (field.kind) {
      case ":method":
        this.#pseudo(this.method);
        this.method = field.value;
        return;
      case ":scheme":
        this.#pseudo(this.scheme);
        this.scheme = field.value;
        return;
      case ":path":
        this.#pseudo(this.path);
        this.path = field.value;
        return;
      case ":authority":
        this.#pseudo(this.authority);
        this.authority = field.value;
        return;
      case "malformed":
        this.isMalformed = true;
        return;
      case "other":
        this.#hasRegular = true;
        return;
      case "content-length":
        this.#hasRegular = true;
        this.#setLength(field.value);
        return;
      default:
        this.#hasRegular = true;
        this.#fields[field.kind] ??= field.value;
    }
  }

  #setLength(text: string): void {
    const length = /^\d{1,15}$/.test(text) ? Number(text) : undefined;
    this.contentLength ??= length;
    if (length === undefined || this.contentLength !== length) this.isMalformed = true;
  }

  /** Pseudo headers stand in front of the others, each once. */
  #pseudo(before: string | undefined): void {
    if (this.#hasRegular || before !== undefined) this.isMalformed = true;
  }
}
