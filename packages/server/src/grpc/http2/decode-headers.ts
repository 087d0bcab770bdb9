/**
 * HPACK decoder (RFC 7541). There is one per connection, and it must see every header block in order.
 * A block that fails to decode ends the connection: the dynamic table would be out of sync for all later blocks.
 */
import { fieldOf, headerField } from "./header-field.js";
import { HeaderTable } from "./header-table.js";
import { decodeHuffman } from "./huffman.js";
import { ConnectionError, errorCodes } from "./protocol.js";
import type { RequestHead } from "./request-head.js";

/** No valid length or index exceeds a frame's size; four continuation bytes of seven bits are enough. */
const MOST_INTEGER_BYTES = 4;

export class HeaderDecoder {
  readonly #table = new HeaderTable();
  #block: Buffer = Buffer.alloc(0);
  #at = 0;

  /** Number of table changes: the same bytes decode to the same headers only while this stays the same. */
  get changes(): number {
    return this.#table.changes;
  }

  decode(block: Buffer, head: RequestHead): void {
    this.#block = block;
    this.#at = 0;
    let mayResize = true;
    while (this.#at < block.length) {
      const byte = block[this.#at]!;
      if (byte >= 0x80) head.add(this.#field(this.#integer(7)));
      else if (byte >= 0x40) {
        const field = this.#literal(6);
        this.#table.add(field);
        head.add(field);
      } else if (byte >= 0x20) {
        // Table size updates are allowed only before the first field (section 4.2).
        if (!mayResize || !this.#table.resize(this.#integer(5))) throw wrong("a size of the table that is not allowed");
        continue;
      } else head.add(this.#literal(4));
      mayResize = false;
    }
  }

  #field(index: number) {
    const field = index === 0 ? undefined : this.#table.at(index);
    if (field === undefined) throw wrong("an index that is not in the table");
    return field;
  }

  #literal(prefixBits: number) {
    const index = this.#integer(prefixBits);
    return index === 0 ? headerField(this.#string(), this.#string()) : fieldOf(this.#field(index), this.#string());
  }

  #integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    const prefix = this.#block[this.#at++]! & most;
    if (prefix < most) return prefix;
    let value = most;
    for (let bytes = 0; bytes < MOST_INTEGER_BYTES; bytes++) {
      const byte = this.#block[this.#at++];
      if (byte === undefined) throw wrong("a block that ends within a number");
      value += (byte & 0x7f) * 2 ** (7 * bytes);
      if (byte < 0x80) return value;
    }
    throw wrong("a number that is too large");
  }

  #string(): string {
    if (this.#at >= this.#block.length) throw wrong("a block that ends within a field");
    const isHuffman = this.#block[this.#at]! >= 0x80;
    const length = this.#integer(7);
    const from = this.#at;
    const to = from + length;
    if (to > this.#block.length) throw wrong("a block that ends within a string");
    this.#at = to;
    if (!isHuffman) return this.#block.toString("latin1", from, to);
    try {
      return decodeHuffman(this.#block, from, to);
    } catch (error) {
      throw wrong((error as Error).message);
    }
  }
}

function wrong(what: string): ConnectionError {
  return new ConnectionError(errorCodes.compressionError, `headers with ${what}`);
}
