/**
 * Detects outages of the store and reports each once: `degraded` with its cause, then `recovered`.
 *
 * Hysteresis: a store that answers some calls and fails others is one outage, not many. The outage ends when checks were decided and
 * none failed for a while. A failure without a cause (a connection that just broke, a call without an answer) is held back for a
 * moment, because the next failure, or a probe, usually knows the cause.
 */
import { SluiceError } from "../errors.js";
import type { Store } from "../store/store.js";

/** How long no check may fail before an outage is over. */
const QUIET_MS = 5_000;
/** How long a report waits for the cause. */
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

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#state !== "none";
  }

  /** A check was answered by policy. */
  failed(cause: unknown): void {
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

  /** The store decided a check while the outage is on. */
  decided(): void {
    this.#hasDecidedSince = true;
    if (this.#ending !== undefined || this.#state !== "reported") return;
    const waitMs = Math.max(0, this.#lastFailureMonotonicMs + QUIET_MS - performance.now());
    this.#ending = setTimeout(() => this.#end(), waitMs).unref();
  }

  close(): void {
    clearTimeout(this.#naming);
    clearTimeout(this.#ending);
  }

  async #name(cause: unknown): Promise<void> {
    const { store } = this.#options;
    await store.ready();
    if (this.#state === "unnamed") this.#report(isNamed(store.whyNotReady) ? store.whyNotReady : cause);
  }

  #report(cause: unknown): void {
    clearTimeout(this.#naming);
    this.#naming = undefined;
    this.#state = "reported";
    this.#options.degraded(cause);
    // The store may have come back while the cause was looked for, and no check may follow.
    if (this.#hasDecidedSince) this.decided();
  }

  #end(): void {
    this.#ending = undefined;
    this.#state = "none";
    this.#options.recovered();
  }
}

/** A store that is ready again by now has no cause to give: that is `undefined`, not a name. */
function isNamed(error: unknown): boolean {
  return error !== undefined && (!(error instanceof SluiceError) || error.cause !== undefined);
}
