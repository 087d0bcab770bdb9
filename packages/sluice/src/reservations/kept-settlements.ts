/**
 * Settlements that could not be delivered to the store: kept, retried with exponential backoff until it answers, and dropped when their
 * reservations have expired. Retries are safe: a reservation is settled once. While the store is away, a forged id cannot be told from a
 * real one. So they are bounded in bytes as well as in count, and reservations that this instance made itself take precedence.
 */
import type { Amounts, Reserved, SettleReply } from "../store/reserved.js";

/** A settlement in flight. */
export interface Settling {
  /** The id of the reservation. */
  readonly id: string;
  readonly reserved: Reserved;
  readonly amounts: Amounts;
  /** The settlement's own name, by which the store recognises a retry. */
  readonly name: string;
}

interface KeptSettlement extends Settling {
  /** True if this instance made the reservation: its id is not forged. */
  readonly isOwn: boolean;
  /** By then the reservation has expired, whenever it began. */
  readonly endsAtMonotonicMs: number;
}

interface KeptOptions {
  /** Rejects if the store does not answer. */
  readonly send: (kept: KeptSettlement) => Promise<SettleReply>;
  readonly onAnswered: (kept: KeptSettlement, reply: SettleReply) => void;
}

const MOST_KEPT = 10_000;
/** Total length of ids. What is parsed from an id takes about ten times as much. */
const MOST_KEPT_BYTES = 4 * 2 ** 20;
const MOST_PER_ROUND = 100;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

export class KeptSettlements {
  /** By the reservation's id: the last amounts count. */
  readonly #kept = new Map<string, KeptSettlement>();
  readonly #options: KeptOptions;
  /** Total length of the ids. */
  #bytes = 0;
  #isSending = false;
  #closed = false;
  /** Given up, or sent too late: what was held counts as spent. */
  dropped = 0;

  constructor(options: KeptOptions) {
    this.#options = options;
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

  /** The name of the settlement that is kept for a reservation. */
  nameOf(id: string): string | undefined {
    return this.#kept.get(id)?.name;
  }

  /** The store has answered another call: there is nothing left to send. False if that was known before. */
  take({ id, name }: Pick<Settling, "id" | "name">): boolean {
    if (this.nameOf(id) !== name) return false;
    this.#forget(id);
    return true;
  }

  #hasRoom({ id }: KeptSettlement): boolean {
    return this.#kept.size < MOST_KEPT && this.#bytes + id.length <= MOST_KEPT_BYTES;
  }

  /** Makes room by dropping the oldest one that another instance made, or nobody. False if there is none. */
  #dropForeign(): boolean {
    for (const { id, isOwn } of this.#kept.values()) {
      if (isOwn) continue;
      this.#forget(id);
      this.dropped++;
      return true;
    }
    return false;
  }

  /** Moves it to the end: settlements for a node that stays down must not hold up those for nodes that are back. */
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
    const sent = await Promise.allSettled(left.map((settlement) => this.#options.send(settlement)));
    sent.forEach((outcome, i) => {
      if (outcome.status === "fulfilled") this.#answered(left[i]!, outcome.value);
    });
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
    let reply: SettleReply;
    try {
      reply = await this.#options.send(settlement);
    } catch {
      this.#putBack(settlement);
      return false;
    }
    // Another call may have received the answer meanwhile, or replaced the costs, which are then sent in their turn.
    if (this.#kept.get(settlement.id) === settlement) {
      this.#forget(settlement.id);
      this.#answered(settlement, reply);
    }
    return true;
  }

  #answered(settlement: KeptSettlement, reply: SettleReply): void {
    if (reply.counters.every(({ state }) => state !== "settled")) this.dropped++;
    this.#options.onAnswered(settlement, reply);
  }
}
