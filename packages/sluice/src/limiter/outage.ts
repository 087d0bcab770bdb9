/**
 * Detects outages of the store and reports each once: `degraded` with its cause, then `recovered`.
 *
 * Hysteresis: a store that answers some calls and fails others is one outage, not many. The outage ends when checks have been decided and
 * none has failed for a while. Without traffic no check can end it, so the store is probed; that takes longer, because a store that answers
 * a probe may still refuse writes. A failure without a cause (a connection that just broke, a call without an answer) is held back briefly,
 * because the next failure or a probe usually knows the cause.
 */
import { SluiceError } from "../errors.js";
import type { Store } from "../store/store.js";

/** The outage ends after this long without a failed check. */
const QUIET_MS = 5_000;
/** The same if no check was decided either, but the store answers a probe. */
const IDLE_MS = 30_000;
/** How long `degraded` is held back until a cause is known. */
const NAMING_MS = 500;

interface OutageOptions {
  readonly store: Pick<Store, "ready" | "whyNotReady">;
  readonly degraded: (cause: unknown) => void;
  readonly recovered: () => void;
}

export class Outage {
  readonly #options: OutageOptions;
  #state: "none" | "unnamed" | "reported" = "none";
  #lastFailureMonotonicMs = 0;
  #hasDecidedSince = false;
  #naming: NodeJS.Timeout | undefined;
  #ending: NodeJS.Timeout | undefined;
  #probing: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#state !== "none";
  }

  /** A check was answered by a failure policy. */
  failed(cause: unknown): void {
    // Checks in flight at close may fail afterwards: nobody is listening any more, and no timer may be left behind.
    if (this.#closed) return;
    this.#lastFailureMonotonicMs = performance.now();
    this.#hasDecidedSince = false;
    clearTimeout(this.#ending);
    this.#ending = undefined;
    if (this.#state === "reported") return;
    if (isNamed(cause)) {
      this.#report(cause);
      return;
    }
    this.#state = "unnamed";
    this.#naming ??= setTimeout(() => void this.#name(cause), NAMING_MS).unref();
  }

  /** The store decided a check during an outage. */
  decided(): void {
    this.#hasDecidedSince = true;
    if (this.#ending !== undefined || this.#state !== "reported" || this.#closed) return;
    const waitMs = Math.max(0, this.#lastFailureMonotonicMs + QUIET_MS - performance.now());
    this.#ending = setTimeout(() => this.#end(), waitMs).unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#naming);
    clearTimeout(this.#ending);
    clearInterval(this.#probing);
  }

  async #name(cause: unknown): Promise<void> {
    const { store } = this.#options;
    await store.ready();
    if (this.#state === "unnamed" && !this.#closed)
      this.#report(isNamed(store.whyNotReady) ? store.whyNotReady : cause);
  }

  #report(cause: unknown): void {
    clearTimeout(this.#naming);
    this.#naming = undefined;
    this.#state = "reported";
    this.#probing = setInterval(() => void this.#probe(), IDLE_MS).unref();
    this.#options.degraded(cause);
    // The store may have recovered while the cause was looked up, and no further check may come.
    if (this.#hasDecidedSince) this.decided();
  }

  async #probe(): Promise<void> {
    const isIdle = (): boolean => performance.now() - this.#lastFailureMonotonicMs >= IDLE_MS && this.isOn;
    // A check may fail while the probe is in flight.
    if (isIdle() && (await this.#options.store.ready()) && isIdle()) this.#end();
  }

  #end(): void {
    clearInterval(this.#probing);
    clearTimeout(this.#ending);
    this.#ending = undefined;
    this.#state = "none";
    this.#options.recovered();
  }
}

/** A store that has recovered by now reports `undefined`, which is no cause. */
function isNamed(error: unknown): boolean {
  return error !== undefined && (!(error instanceof SluiceError) || error.cause !== undefined);
}
