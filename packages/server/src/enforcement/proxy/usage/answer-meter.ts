/**
 * Stands between the upstream and the client: every byte passes as it comes, and the usage reader sees it on its way.
 * Where the proxy asked for usage that the client did not ask for, the event that reports it is taken out again. Then, and only then,
 * an event is held until its end, up to 64 KiB; clients of event streams cannot act on part of one anyway.
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
  /** Take out events that report usage and carry nothing else. */
  readonly hidesUsage: boolean;
}

export class AnswerMeter extends Transform {
  readonly reader: UsageReader;
  readonly hidesUsage: boolean;
  #chunk: Buffer = NOTHING;
  /** Where the bytes of the current chunk begin that are not decided yet. */
  #from = 0;
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** The current event is too large to be held: it passes, whatever it is. */
  #letsGo = false;
  /** The chunk ended in the CR that ends an event: a LF that follows belongs to the event, which was passed on or taken out. */
  #feed: "passes" | "drops" | undefined;

  constructor({ vendor, kind, hidesUsage }: MeterOptions) {
    super();
    this.hidesUsage = hidesUsage && kind === "events";
    this.reader = new UsageReader({ vendor, kind, onEvent: this.hidesUsage ? (end) => this.#event(end) : undefined });
  }

  /** Bytes that wait here for the end of their event. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    // A decoder may write nothing between the CR and the LF that end an event: the LF is still to come.
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
