/** The HPACK tables (RFC 7541, section 2.3): the static table, and the dynamic table of fields that this peer has sent before. */
import { FIELD_OVERHEAD_BYTES, type HeaderField, headerField } from "./header-field.js";

/** Appendix A: indexes 1 to 61. */
const staticFields = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ["accept-language", ""],
  ["accept-ranges", ""],
  ["accept", ""],
  ["access-control-allow-origin", ""],
  ["age", ""],
  ["allow", ""],
  ["authorization", ""],
  ["cache-control", ""],
  ["content-disposition", ""],
  ["content-encoding", ""],
  ["content-language", ""],
  ["content-length", ""],
  ["content-location", ""],
  ["content-range", ""],
  ["content-type", ""],
  ["cookie", ""],
  ["date", ""],
  ["etag", ""],
  ["expect", ""],
  ["expires", ""],
  ["from", ""],
  ["host", ""],
  ["if-match", ""],
  ["if-modified-since", ""],
  ["if-none-match", ""],
  ["if-range", ""],
  ["if-unmodified-since", ""],
  ["last-modified", ""],
  ["link", ""],
  ["location", ""],
  ["max-forwards", ""],
  ["proxy-authenticate", ""],
  ["proxy-authorization", ""],
  ["range", ""],
  ["referer", ""],
  ["refresh", ""],
  ["retry-after", ""],
  ["server", ""],
  ["set-cookie", ""],
  ["strict-transport-security", ""],
  ["transfer-encoding", ""],
  ["user-agent", ""],
  ["vary", ""],
  ["via", ""],
  ["www-authenticate", ""],
].map(([name, value]) => headerField(name!, value!));

/** The default size, which peers may use without asking; we never offer more. */
export const TABLE_BYTES = 4_096;
/** A field counts at least 32 bytes, so the table holds at most this many. A power of two. */
const RING = TABLE_BYTES / FIELD_OVERHEAD_BYTES;

export class HeaderTable {
  readonly #ring: (HeaderField | undefined)[] = [];
  /** Fields ever added, and how many of the newest are still in the table. */
  #added = 0;
  #count = 0;
  #bytes = 0;
  #mostBytes = TABLE_BYTES;
  /** Number of insertions and resizes. */
  changes = 0;

  /** Undefined if there is no such index. */
  at(index: number): HeaderField | undefined {
    if (index <= staticFields.length) return staticFields[index - 1];
    const age = index - staticFields.length;
    return age > this.#count ? undefined : this.#ring[(this.#added - age) % RING];
  }

  add(field: HeaderField): void {
    this.changes++;
    this.#makeRoom(field.size);
    // A field larger than the table empties it and is not added (section 4.4).
    if (field.size > this.#mostBytes) return;
    this.#ring[this.#added % RING] = field;
    this.#added++;
    this.#count++;
    this.#bytes += field.size;
  }

  /** False if the peer asks for more than we offered. */
  resize(bytes: number): boolean {
    if (bytes > TABLE_BYTES) return false;
    this.changes++;
    this.#mostBytes = bytes;
    this.#makeRoom(0);
    return true;
  }

  #makeRoom(bytes: number): void {
    while (this.#count > 0 && this.#bytes + bytes > this.#mostBytes) {
      const oldest = (this.#added - this.#count) % RING;
      this.#bytes -= this.#ring[oldest]!.size;
      this.#ring[oldest] = undefined;
      this.#count--;
    }
  }
}
