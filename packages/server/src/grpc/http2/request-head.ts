/**
 * A request's header list, filled field by field as its block is decoded. Only fields that are read somewhere are kept. Errors are recorded
 * rather than thrown, because the block must be decoded to its end: later blocks depend on the HPACK table.
 */
import type { HeaderField, ReadField } from "./header-field.js";

/** Decoded size, as SETTINGS_MAX_HEADER_LIST_SIZE counts it. A block of a few bytes can reference a large field many times (HPACK bomb). */
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

  /** Whether all required pseudo-header fields are present (RFC 9113, section 8.3.1). */
  get isRequest(): boolean {
    const { method, scheme, path } = this;
    return !this.isMalformed && method !== undefined && scheme !== undefined && path !== undefined && path !== "";
  }

  /** Whether this is a valid trailer section: no pseudo-header fields. */
  get isTrailer(): boolean {
    const { method, scheme, path, authority } = this;
    return !this.isMalformed && (method ?? scheme ?? path ?? authority) === undefined;
  }

  /** The first value of a repeated field; for `x-forwarded-for` all of them, since each proxy may add a line. */
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
      case "x-forwarded-for": {
        this.#hasRegular = true;
        const before = this.#fields[field.kind];
        this.#fields[field.kind] = before === undefined ? field.value : `${before}, ${field.value}`;
        return;
      }
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

  /** Pseudo-header fields come before all others, each at most once. */
  #pseudo(before: string | undefined): void {
    if (this.#hasRegular || before !== undefined) this.isMalformed = true;
  }
}
