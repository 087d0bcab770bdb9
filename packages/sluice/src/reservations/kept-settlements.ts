/**
 * Settlements that the store could not be told of: kept, sent again with exponential backoff until it answers, and dropped when their
 * reservations have ended. Sending one again is safe: a reservation is settled once.
 * Without the store nobody can tell a forged id from a true one. So they are bounded in bytes as well as in count, and reservations
 * that this instance made itself go first.
 */
import type { Amounts, Reserved } from "../store/reserved.js";

interface KeptSettlement {
  readonly id: string;
  readonly reserved: Reserved;
  readonly amounts: Amounts;
  /** This instance made the reservation: its id is no forgery. */
  readonly isOwn: boolean;
  /** After this the reservation has expired, whenever it began. */
  readonly endsAtMonotonicMs: number;
}

const MOST_KEPT = 10_000;
/** Of ids. What is parsed from one takes about ten times as much. */
const MOST_KEPT_BYTES = 4 * 2 ** 20;
const MOST_PER_ROUND = 100;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

export class KeptSettlements {
  /** By the reservation's id: the last amounts count. */
  readonly #kept = new Map<string, KeptSettlement>();
  /** Resolves when the store has answered, and rejects when it has not. */
  readonly #send: (kept: KeptSettlement) => Promise<void>;
  /** Of the ids. */
  #bytes = 0;
  #isSending = false;
  #closed = false;
  /** Given up: what was held stands as spent. */
  dropped = 0;

  constructor(send: (kept: KeptSettlement) => Promise<void>) {
    this.#send = send;
  }

  get count(): number {
    return this.#kept.size;
  }

  keep(settlement: KeptSettlement): void {
    this.#forget(settlement.id);
    while (!this.#hasRoom(settlement) && settlement.isOwn && this.#dropForeign());
    if (this.#closed || !this.#hasRoom(settlement)) {
      this.dropped++;
      return;
    }
    this.#kept.set(settlement.id, settlement);
    this.#bytes += settlement.id.length;
    if (!this.#isSending) void this.#sendAll();
  }

  #hasRoom({ id }: KeptSettlement): boolean {
    return this.#kept.size < MOST_KEPT && this.#bytes + id.length <= MOST_KEPT_BYTES;
  }

  /** Makes room by the first that another instance made, or nobody. False if there is none. */
  #dropForeign(): boolean {
    for (const { id, isOwn } of this.#kept.values()) {
      if (isOwn) continue;
      this.#forget(id);
      this.dropped++;
      return true;
    }
    return false;
  }

  /** Behind the others: those of a node that stays down must not hold up those of nodes that are back. */
  #putBack(settlement: KeptSettlement): void {
    if (this.#kept.get(settlement.id) !== settlement) return;
    this.#kept.delete(settlement.id);
    this.#kept.set(settlement.id, settlement);
  }

  #forget(id: string): void {
    if (this.#kept.delete(id)) this.#bytes -= id.length;
  }

  /** Tries what is left once more. */
  async close(): Promise<void> {
    this.#closed = true;
    const left = [...this.#kept.values()];
    this.#kept.clear();
    this.#bytes = 0;
    const sent = await Promise.allSettled(left.map((settlement) => this.#send(settlement)));
    this.dropped += sent.filter(({ status }) => status === "rejected").length;
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    for (let pauseMs = FIRST_PAUSE_MS; this.#kept.size > 0; ) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
      const round = [...this.#kept.values()].slice(0, MOST_PER_ROUND);
      const sent = await Promise.all(round.map((settlement) => this.#sendOne(settlement)));
      pauseMs = sent.includes(true) ? FIRST_PAUSE_MS : Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
    this.#isSending = false;
  }

  async #sendOne(settlement: KeptSettlement): Promise<boolean> {
    if (performance.now() >= settlement.endsAtMonotonicMs) {
      this.#forget(settlement.id);
      this.dropped++;
      return false;
    }
    try {
      await this.#send(settlement);
    } catch {
      this.#putBack(settlement);
      return false;
    }
    this.#forget(settlement.id);
    return true;
  }
}
