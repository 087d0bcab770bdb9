/**
 * The reservations that this instance made and has not seen settled. When one expires, the store is asked once whether another instance has
 * settled it. If not, it is reported as expired, and what it held counts as spent.
 */
import { REMEMBER_HOLD_MS, type Reserved } from "../store/reserved.js";

interface Open {
  readonly id: string;
  readonly reserved: Reserved;
  readonly held: Readonly<Record<string, number>>;
  endsAtMonotonicMs: number;
}

interface OpenOptions {
  /** Whether the store reports that nobody settled it; rejects if the store does not answer. */
  readonly hasExpired: (reserved: Reserved) => Promise<boolean>;
  readonly onExpired: (id: string, held: Readonly<Record<string, number>>) => void;
}

/** Beyond this many, the expiry of a reservation is not reported. */
const MOST_OPEN = 100_000;
const MOST_PER_ROUND = 200;
/** Reservations that expired while the store did not answer: beyond this many, one is assumed to be unsettled. */
const MOST_UNSURE = 10_000;
const LOOK_EVERY_MS = 1_000;
/** The store's clock may be slightly behind. */
const GRACE_MS = 500;

export class OpenReservations {
  readonly #options: OpenOptions;
  /** By term, each in the order of expiry: rules have few different terms. */
  readonly #lanes = new Map<number, Map<string, Open>>();
  /** Expired, and the store has not answered yet whether anyone settled them. */
  readonly #unsure = new Map<string, Open>();
  #timer: NodeJS.Timeout | undefined;
  #count = 0;
  /** Lookups in flight. */
  #asking = 0;
  #isClosed = false;

  constructor(options: OpenOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#count;
  }

  add(open: Omit<Open, "endsAtMonotonicMs">): void {
    if (this.#count >= MOST_OPEN) return;
    const { ttlMs } = open.reserved;
    let lane = this.#lanes.get(ttlMs);
    if (lane === undefined) {
      lane = new Map();
      this.#lanes.set(ttlMs, lane);
    }
    // Moves it to the end: an extension renews the term.
    if (!lane.delete(open.id)) this.#count++;
    lane.set(open.id, { ...open, endsAtMonotonicMs: performance.now() + ttlMs + GRACE_MS });
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
  }

  has(id: string, { ttlMs }: Reserved): boolean {
    return this.#lanes.get(ttlMs)?.has(id) ?? false;
  }

  /** True if it was open. */
  remove(id: string, { ttlMs }: Reserved): boolean {
    this.#unsure.delete(id);
    const lane = this.#lanes.get(ttlMs);
    if (lane === undefined || !lane.delete(id)) return false;
    this.#count--;
    if (lane.size === 0) this.#lanes.delete(ttlMs);
    this.#restIfEmpty();
    return true;
  }

  close(): void {
    this.#isClosed = true;
    this.#rest();
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #restIfEmpty(): void {
    if (this.#lanes.size === 0 && this.#unsure.size === 0 && this.#asking === 0) this.#rest();
  }

  #look(): void {
    const nowMonotonicMs = performance.now();
    let looked = 0;
    for (const open of this.#unsure.values()) {
      if (looked++ >= MOST_PER_ROUND) break;
      // Moves it to the end, until the store has answered.
      this.#unsure.delete(open.id);
      void this.#ended(open);
    }
    for (const lane of this.#lanes.values()) {
      for (const open of lane.values()) {
        if (open.endsAtMonotonicMs > nowMonotonicMs || looked++ >= MOST_PER_ROUND) break;
        void this.#ended(open);
        this.remove(open.id, open.reserved);
      }
    }
  }

  async #ended(open: Open): Promise<void> {
    const { id, reserved, held, endsAtMonotonicMs } = open;
    this.#asking++;
    // If the store does not answer, another instance may have settled it: keep asking for as long as the store would remember that.
    const hasExpired = await this.#options.hasExpired(reserved).catch(() => undefined);
    this.#asking--;
    const isRemembered = performance.now() < endsAtMonotonicMs + REMEMBER_HOLD_MS;
    if (hasExpired === undefined && isRemembered && this.#unsure.size < MOST_UNSURE) {
      if (!this.#isClosed) this.#unsure.set(id, open);
    } else if (hasExpired !== false) this.#options.onExpired(id, held);
    this.#restIfEmpty();
  }
}
