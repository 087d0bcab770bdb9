/**
 * Settlements that the store could not be told of: kept, sent again with exponential backoff until it answers, and dropped when their
 * reservations have ended. Sending one again is safe: a reservation is settled once.
 */
import type { Amounts, Reserved } from "../store/reserved.js";

interface KeptSettlement {
  readonly id: string;
  readonly reserved: Reserved;
  readonly amounts: Amounts;
  /** After this the reservation has expired, whenever it began. */
  readonly endsAtMonotonicMs: number;
}

const MOST_KEPT = 10_000;
const MOST_PER_ROUND = 100;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

export class KeptSettlements {
  /** By the reservation's id: the last amounts count. */
  readonly #kept = new Map<string, KeptSettlement>();
  /** Resolves when the store has answered, and rejects when it has not. */
  readonly #send: (kept: KeptSettlement) => Promise<void>;
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
    if (this.#closed || (this.#kept.size >= MOST_KEPT && !this.#kept.has(settlement.id))) {
      this.dropped++;
      return;
    }
    this.#kept.set(settlement.id, settlement);
    if (!this.#isSending) void this.#sendAll();
  }

  /** Tries what is left once more. */
  async close(): Promise<void> {
    this.#closed = true;
    const left = [...this.#kept.values()];
    this.#kept.clear();
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
      this.#kept.delete(settlement.id);
      this.dropped++;
      return false;
    }
    try {
      await this.#send(settlement);
    } catch {
      return false;
    }
    this.#kept.delete(settlement.id);
    return true;
  }
}
