/**
 * Whether the store answers this instance; if not, since when and why. The limiter's events report it, and a probe where there is no
 * traffic. Log, metrics, live view, alerts and console all read it here, so that no two of them disagree.
 */
import type { Limiter } from "sluice";
import type { Log } from "../log.js";
import type { OutageView } from "../monitoring/views/stats.js";
import { causeInWords } from "./failure-words.js";

const PROBE_EVERY_MS = 5_000;

export class StoreHealth {
  readonly #limiter: Limiter;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #sinceMs: number | undefined;
  #error = "";
  /** The outage that the probe found. Only checks end an outage that checks found: a store that answers a probe may still refuse writes. */
  #probedMs: number | undefined;

  constructor({ limiter, log }: { limiter: Limiter; log: Log }) {
    this.#limiter = limiter;
    this.#log = log;
    limiter.on("degraded", (cause) => this.#begin(cause));
    limiter.on("recovered", () => this.#end());
    this.#timer = setInterval(() => void this.probe(), PROBE_EVERY_MS);
    this.#timer.unref();
  }

  get state(): "up" | "degraded" {
    return this.#sinceMs === undefined ? "up" : "degraded";
  }

  /** Undefined while the store answers. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** The last error of the store or its client, as it came: for logs and detection. */
  get error(): string | undefined {
    return this.#error === "" ? undefined : this.#error;
  }

  view(): OutageView | undefined {
    return this.#sinceMs === undefined ? undefined : { sinceMs: this.#sinceMs, cause: causeInWords(this.#error) };
  }

  /** Asks the store itself: without traffic no check would find out that it is gone. */
  async probe(): Promise<void> {
    const answers = await this.#limiter.ready();
    // The first failure seldom names the cause: a connection that is cut is found stopped, or full, when it is tried again.
    if (!answers && this.#sinceMs !== undefined) this.#begin(this.#limiter.whyNotReady);
    if (answers && this.#probedMs !== undefined && this.#sinceMs === this.#probedMs) this.#end();
    if (answers || this.#sinceMs !== undefined) return;
    this.#begin(this.#limiter.whyNotReady);
    this.#probedMs = this.#sinceMs;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #begin(cause: unknown): void {
    this.#error = cause instanceof Error ? cause.message : String(cause);
    if (this.#sinceMs !== undefined) return;
    this.#sinceMs = Date.now();
    this.#log.warn("the store does not answer; failure policies do", { cause: String(cause) });
  }

  #end(): void {
    if (this.#sinceMs !== undefined) this.#log.info("the store answers again");
    this.#sinceMs = undefined;
    this.#error = "";
  }
}
