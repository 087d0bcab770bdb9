/**
 * Assembles header blocks from HEADERS and CONTINUATION frames, with nothing allowed between them. Every block is decoded, even for refused
 * streams: later blocks depend on the HPACK table that it updates.
 */
import { HeaderDecoder } from "./decode-headers.js";
import type { Frame } from "./frame-reader.js";
import { ConnectionError, errorCodes, flags, frameTypes, protocolError } from "./protocol.js";
import { MOST_HEADER_LIST_BYTES, RequestHead } from "./request-head.js";

const MOST_BLOCK_BYTES = MOST_HEADER_LIST_BYTES;
/** Bounds empty frames, which are free for the peer (CONTINUATION flood). */
const MOST_PARTS = 32;
/** Largest block that is cached. */
const MOST_REMEMBERED_BYTES = 256;

interface Block {
  readonly streamId: number;
  readonly endsStream: boolean;
  readonly head: RequestHead;
}

interface Unfinished {
  readonly streamId: number;
  readonly endsStream: boolean;
  readonly parts: Buffer[];
  bytes: number;
}

export class HeaderBlocks {
  readonly #decoder = new HeaderDecoder();
  /** A decoded head is immutable, so streams may share it. */
  #last: { readonly bytes: Buffer; readonly changes: number; readonly head: RequestHead } | undefined;
  #unfinished: Unfinished | undefined;

  check(type: number, streamId: number): void {
    if (this.#unfinished === undefined) return;
    if (type !== frameTypes.continuation || streamId !== this.#unfinished.streamId)
      throw protocolError("a frame within a header block");
  }

  /** Handles HEADERS. Returns the block if it is complete. */
  begin(frame: Frame): Block | undefined {
    const { streamId } = frame;
    const endsStream = (frame.flags & flags.endStream) !== 0;
    if ((frame.flags & flags.endHeaders) !== 0) {
      return { streamId, endsStream, head: this.#decode(frame.bytes.subarray(frame.from, frame.to)) };
    }
    this.#unfinished = { streamId, endsStream, parts: [], bytes: 0 };
    this.#keep(this.#unfinished, frame);
    return undefined;
  }

  /** Handles CONTINUATION. Returns the block if it is complete. */
  continue(frame: Frame): Block | undefined {
    const unfinished = this.#unfinished;
    if (unfinished === undefined) throw protocolError("CONTINUATION without HEADERS");
    this.#keep(unfinished, frame);
    if ((frame.flags & flags.endHeaders) === 0) return undefined;
    this.#unfinished = undefined;
    const { streamId, endsStream, parts } = unfinished;
    return { streamId, endsStream, head: this.#decode(Buffer.concat(parts)) };
  }

  #keep(unfinished: Unfinished, { bytes, from, to }: Frame): void {
    unfinished.parts.push(Buffer.from(bytes.subarray(from, to)));
    unfinished.bytes += to - from;
    if (unfinished.bytes > MOST_BLOCK_BYTES || unfinished.parts.length > MOST_PARTS) {
      throw new ConnectionError(errorCodes.enhanceYourCalm, "a header block without end");
    }
  }

  /**
   * Caches the last block: while the HPACK table is unchanged, equal bytes decode to equal headers, and most calls of a client differ only
   * in their message.
   */
  #decode(bytes: Buffer): RequestHead {
    const { changes } = this.#decoder;
    const last = this.#last;
    if (last !== undefined && last.changes === changes && last.bytes.equals(bytes)) return last.head;
    const head = new RequestHead();
    this.#decoder.decode(bytes, head);
    if (this.#decoder.changes === changes && bytes.length <= MOST_REMEMBERED_BYTES)
      this.#last = { bytes: Buffer.from(bytes), changes, head };
    return head;
  }
}
