/// <reference lib="esnext.disposable" preserve="true" />
/** A lease as its holder sees it: release, renew, and an abort signal for when it is lost. */
import type { MaybePromise } from "../store/store.js";

/** The part of the limiter that a lease calls. */
interface LeaseKeeper {
  /** `hasLeft`: the client disconnected before it was answered. */
  release(id: string, hasLeft?: boolean): MaybePromise<boolean>;
  /** Milliseconds until it ends now; 0 if it was lost. */
  renew(id: string): MaybePromise<number>;
}

/** The longest delay that Node's timers support; a longer one fires after one millisecond. */
const LONGEST_TIMER_MS = 2_147_483_647;
/** The store may miss one renewal, even two. */
const RENEWALS_A_TERM = 3;
/** Share of a term: NTP slews a clock by up to 500 ppm, at worst ours and the store's in opposite directions. */
const DRIFT = 0.001;

export class Lease {
  readonly id: string;
  /** Counted from the decision; 0 if a retry by request id found the lease already over. */
  readonly expiresAfterMs: number;
  readonly #keeper: LeaseKeeper;
  #termMs: number;
  #endsAtMonotonicMs: number;
  #abort: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  /** `sinceMonotonicMs`: the earliest time it may have begun, so that our expiry is never later than the store's. */
  constructor(lease: { id: string; expiresAfterMs: number; keeper: LeaseKeeper; sinceMonotonicMs: number }) {
    this.id = lease.id;
    this.expiresAfterMs = lease.expiresAfterMs;
    this.#keeper = lease.keeper;
    this.#termMs = lease.expiresAfterMs;
    this.#endsAtMonotonicMs = lease.sinceMonotonicMs + safeTermMs(lease.expiresAfterMs);
  }

  /** Aborts when the lease is lost: it expired, or a renewal found it gone. Does not abort on release. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      this.#watch();
    }
    return this.#abort.signal;
  }

  /** Frees the place. False if it was no longer held; releasing twice is harmless. */
  async release(): Promise<boolean> {
    this.#end();
    return await this.#keeper.release(this.id);
  }

  /**
   * Like `release`, for a client that has disconnected while the server may still be working for it: a place in flight is freed later. For
   * middleware.
   */
  static async leave(lease: Lease): Promise<boolean> {
    lease.#end();
    return await lease.#keeper.release(lease.id, true);
  }

  /**
   * Renews for a holder that keeps the lease as long as its work takes, until it is lost or the returned function is called. A retry by
   * request id may find the first term nearly over: the pauses follow the term that the last renewal began.
   */
  static keep(lease: Lease): () => void {
    let timer: NodeJS.Timeout | undefined;
    let isStopped = false;
    const renewLater = (): void => {
      const pauseMs = Math.max(1, Math.min(lease.#termMs / RENEWALS_A_TERM, LONGEST_TIMER_MS));
      timer = setTimeout(() => {
        lease.renew().then(
          (isHeld) => {
            if (isHeld && !isStopped) renewLater();
          },
          // The store is away: the lease may outlast that.
          () => {
            if (!isStopped) renewLater();
          },
        );
      }, pauseMs);
      timer.unref();
    };
    renewLater();
    return () => {
      isStopped = true;
      clearTimeout(timer);
    };
  }

  /** Holds the place for another full term. False if it was lost: stop the work, because someone else may have the place. */
  async renew(): Promise<boolean> {
    if (this.#over) return false;
    const sinceMonotonicMs = performance.now();
    const expiresAfterMs = await this.#keeper.renew(this.id);
    if (expiresAfterMs === 0) {
      this.#lose();
      return false;
    }
    this.#termMs = expiresAfterMs;
    this.#endsAtMonotonicMs = sinceMonotonicMs + safeTermMs(expiresAfterMs);
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
    if (leftMs <= 0) {
      this.#lose();
      return;
    }
    this.#timer = setTimeout(() => this.#watch(), Math.min(leftMs, LONGEST_TIMER_MS));
    this.#timer.unref();
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

/** Our clock may be slower than the store's: the holder must stop before the store gives the place to another. */
function safeTermMs(termMs: number): number {
  return termMs * (1 - DRIFT);
}
