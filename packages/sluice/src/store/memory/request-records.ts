/**
 * Remembers the answers to request ids for a minute, bounded in bytes: the oldest ids are evicted. A record with a charge exists as long as
 * its charge stands: a refund deletes it. Pure: time is an argument.
 */
import { ExpiringMap } from "../expiring-map.js";
import { REMEMBER_MS, type Receipt, type StoreReply, type StoreRequest } from "../store.js";
import { recordBytes } from "./memory-bytes.js";

interface RequestRecord {
  readonly endsAtMs: number;
  readonly bytes: number;
  readonly fingerprint: string;
  readonly reply: StoreReply;
  readonly receipt: Receipt;
}

export class RequestRecords {
  readonly #records = new ExpiringMap<RequestRecord>();
  readonly #maxBytes: number;
  /** Ids evicted before their end. */
  evicted = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get count(): number {
    return this.#records.count;
  }

  get bytes(): number {
    return this.#records.bytes;
  }

  /** A record that has expired is gone, swept or not, like an expired key in Redis. */
  find(id: string, nowMs: number): RequestRecord | undefined {
    const record = this.#records.get(id);
    return record !== undefined && record.endsAtMs > nowMs ? record : undefined;
  }

  /** The earlier reply to the id, marked as repeated. */
  recall(id: string, nowMs: number): StoreReply | undefined {
    const record = this.find(id, nowMs);
    return record && repeated(record, nowMs);
  }

  remember(id: string, request: StoreRequest, reply: StoreReply, nowMs: number): void {
    const { entryId, rulesVersion, checks, fingerprint } = request;
    const bytes = recordBytes(id, checks);
    while (this.#records.bytes + bytes > this.#maxBytes && this.#records.count > 0) {
      if (this.#records.evict(nowMs)) this.evicted++;
    }
    const receipt = { entryId, rulesVersion, checks };
    this.#records.set(id, { endsAtMs: nowMs + REMEMBER_MS, bytes, fingerprint, reply, receipt }, nowMs);
  }

  delete(id: string): void {
    this.#records.delete(id);
  }

  sweep(looks: number, nowMs: number): void {
    this.#records.sweep(looks, nowMs);
  }
}

export function repeated({ reply, receipt }: RequestRecord, nowMs: number): StoreReply {
  return { ...reply, repeated: { ...receipt, atMs: nowMs } };
}
