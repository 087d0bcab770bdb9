/**
 * A stream between upstream and client: bytes pass as they arrive, and the usage reader sees them on the way.
 * If the proxy requested usage that the client did not ask for, the event that reports it is removed. Only then is an event buffered to its
 * end, up to 64 KiB; clients cannot act on a partial event anyway.
 */
import { Transform, type TransformCallback } from "node:stream";
import type { BodyKind } from "sluice/internal";
import { UsageReader } from "./usage-reader.js";
import type { Vendor } from "./vendors.js";

const MOST_HELD_BYTES = 64 * 1024;
const LF = 0x0a;
const NOTHING: Buffer = Buffer.alloc(0);

interface MeterOptions {
  readonly vendor: Vendor;
  readonly kind: BodyKind;
  readonly isMedia?: boolean;
  /** Remove events that report usage and nothing else. */
  readonly hidesUsage: boolean;
}

export class AnswerMeter extends Transform {
  readonly reader: UsageReader;
  readonly hidesUsage: boolean;
  #chunk: Buffer = NOTHING;
  /** Start of the bytes in the current chunk that are not decided yet. */
  #from = 0;
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** The current event is too large to buffer: let it pass, whatever it is. */
  #letsGo = false;
  /** The chunk ended in the CR that ends an event: a following LF belongs to that event, which was passed or dropped. */
  #feed: "passes" | "drops" | undefined;

  constructor({ vendor, kind, isMedia = false, hidesUsage }: MeterOptions) {
    super();
    this.hidesUsage = hidesUsage && kind === "events";
    this.reader = new UsageReader({
      vendor,
      kind,
      isMedia,
      onEvent: this.hidesUsage ? (end) => this.#event(end) : undefined,
    });
  }

  /** Bytes buffered until the end of their event. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    // A decoder may emit an empty chunk between the CR and LF that end an event: the LF is still to come.
    if (chunk.length === 0) {
      done();
      return;
    }
    if (!this.hidesUsage) {
      this.reader.push(chunk);
      done(null, chunk);
      return;
    }
    this.#chunk = chunk;
    this.#from = this.#feed !== undefined && chunk[0] === LF ? 1 : 0;
    if (this.#feed === "passes") this.#pass(chunk.subarray(0, this.#from));
    this.#feed = undefined;
    this.reader.push(chunk);
    this.#keepRest();
    done();
  }

  override _flush(done: TransformCallback): void {
    this.#passHeld();
    done();
  }

  #event({ next, byReturn, isUsageOnly }: { next: number; byReturn: boolean; isUsageOnly: boolean }): void {
    const end = byReturn && this.#chunk[next] === LF ? next + 1 : next;
    const drops = isUsageOnly && !this.#letsGo;
    if (byReturn && next === this.#chunk.length) this.#feed = drops ? "drops" : "passes";
    if (drops) {
      this.#held = [];
      this.#heldBytes = 0;
    } else {
      this.#passHeld();
      this.#pass(this.#chunk.subarray(this.#from, end));
    }
    this.#from = end;
    this.#letsGo = false;
  }

  #keepRest(): void {
    const rest = this.#chunk.subarray(this.#from);
    this.#chunk = NOTHING;
    if (this.#letsGo) this.#pass(rest);
    else if (rest.length > 0) {
      this.#held.push(rest);
      this.#heldBytes += rest.length;
      this.#letsGo = this.#heldBytes > MOST_HELD_BYTES;
      if (this.#letsGo) this.#passHeld();
    }
  }

  #passHeld(): void {
    for (const piece of this.#held) this.#pass(piece);
    this.#held = [];
    this.#heldBytes = 0;
  }

  #pass(piece: Buffer): void {
    if (piece.length > 0) this.push(piece);
  }
}
