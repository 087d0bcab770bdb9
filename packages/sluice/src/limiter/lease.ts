/**
 * A lease as its holder sees it: release, renew, and an abort signal when it is lost.
 */
import type { MaybePromise } from "../store/store.js";

/** The part of the limiter that a lease calls. */
interface LeaseKeeper {
  release(id: string): MaybePromise<boolean>;
  /** Ms until it now ends; 0 if it was lost. */
  renew(id: string): MaybePromise<number>;
}

/** The longest that a timer can hold. */
const LONGEST_TIMER_MS = 2_147_483_647;

export class Lease {
  readonly id: string;
  /** As the decision was made. */
  readonly expiresAfterMs: number;
  readonly #keeper: LeaseKeeper;
  #endsAtMonotonicMs: number;
  #abort: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  /** `sinceMonotonicMs`: when it began at the latest, so that our idea of the end is never later than the store's. */
  constructor(lease: { id: string; expiresAfterMs: number; keeper: LeaseKeeper; sinceMonotonicMs: number }) {
    this.id = lease.id;
    this.expiresAfterMs = lease.expiresAfterMs;
    this.#keeper = lease.keeper;
    this.#endsAtMonotonicMs = lease.sinceMonotonicMs + lease.expiresAfterMs;
  }

  /** Aborts when the lease is lost: it ended without renewal, or a renewal found it gone. Not when it is released. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      this.#watch();
    }
    return this.#abort.signal;
  }

  /** Frees the place. False if it was not held any more; releasing twice is harmless. */
  async release(): Promise<boolean> {
    this.#end();
    return await this.#keeper.release(this.id);
  }

  /** Holds the place for another full term. False if it was lost: stop the work, someone else may have the place. */
  async renew(): Promise<boolean> {
    if (this.#over) return false;
    const sinceMonotonicMs = performance.now();
    const expiresAfterMs = await this.#keeper.renew(this.id);
    if (expiresAfterMs === 0) {
      this.#lose();
      return false;
    }
    this.#endsAtMonotonicMs = sinceMonotonicMs + expiresAfterMs;
    if (this.#abort !== undefined) this.#watch();
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  #watch(): void {
    clearTimeout(this.#timer);
    if (this.#over) return;
    const leftMs = this.#endsAtMonotonicMs - performance.now();
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.max(0, leftMs), LONGEST_TIMER_MS));
    this.#timer.unref();
  }

  #look(): void {
    if (performance.now() >= this.#endsAtMonotonicMs) this.#lose();
    else this.#watch();
  }

  #lose(): void {
    this.#end();
    this.#abort?.abort(new Error("the lease was lost: it ended before it was renewed"));
  }

  #end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
  }
}
