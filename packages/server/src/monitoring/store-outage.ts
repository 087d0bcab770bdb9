/**
 * Whether this instance's store answers; if not, since when and why. Told by the limiter's events, and by a probe where nobody asks anything.
 * Every view of the admin API takes it from here, so that no two pages disagree.
 */
import type { Limiter } from "sluice";
import type { OutageView } from "./views.js";

const PROBE_EVERY_MS = 5_000;

export class StoreOutage {
  readonly #limiter: Limiter;
  readonly #probe: NodeJS.Timeout;
  #sinceMs: number | undefined;
  #error = "";
  /** The outage that the probe found. What checks have found, only checks take back: a store that answers a probe may still refuse to write. */
  #probedMs: number | undefined;

  constructor(limiter: Limiter) {
    this.#limiter = limiter;
    limiter.on("degraded", (cause) => this.#begin(cause));
    limiter.on("recovered", () => this.#end());
    this.#probe = setInterval(() => void this.#look(), PROBE_EVERY_MS);
    this.#probe.unref();
  }

  /** Undefined while the store answers. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** What the store or its client said last, as it came: for logs and detection. */
  get error(): string | undefined {
    return this.#error === "" ? undefined : this.#error;
  }

  view(): OutageView | undefined {
    return this.#sinceMs === undefined ? undefined : { sinceMs: this.#sinceMs, cause: causeInWords(this.#error) };
  }

  close(): void {
    clearInterval(this.#probe);
  }

  #begin(cause: unknown): void {
    this.#sinceMs ??= Date.now();
    this.#error = cause instanceof Error ? cause.message : String(cause);
  }

  #end(): void {
    this.#sinceMs = undefined;
    this.#error = "";
  }

  /** Without traffic nobody would notice that the store is gone. */
  async #look(): Promise<void> {
    const answers = await this.#limiter.ready();
    // The first failure seldom names the cause: a connection that is cut is found stopped, or full, when it is tried again.
    if (!answers && this.#sinceMs !== undefined) this.#begin(this.#limiter.whyNotReady);
    if (answers && this.#probedMs !== undefined && this.#sinceMs === this.#probedMs) this.#end();
    if (answers || this.#sinceMs !== undefined) return;
    this.#begin(this.#limiter.whyNotReady);
    this.#probedMs = this.#sinceMs;
  }
}

/** The first that matches. */
const wordings: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/WRONGPASS|NOAUTH|invalid password|without any password/, "Redis does not accept the password"],
  [/NOPERM|no permissions|can't run this command/, "Redis does not give its user the rights that are needed"],
  [/max number of clients/, "Redis accepts no more connections (maxclients)"],
  [/LOADING/, "Redis is starting and reads its data"],
  [/\bOOM\b/, "Redis is out of memory (OOM) and refuses writes"],
  [/MISCONF/, "Redis cannot save to its disk and refuses writes"],
  [/READONLY|MASTERDOWN|NOREPLICAS/, "Redis accepts no writes: it is a replica, or lacks replicas"],
  [/CLUSTERDOWN|Hash slot not served/, "a part of the Redis Cluster has no leader"],
  [/DB index is out of range/, "Redis has no database of this number"],
  [/[Ss]entinel/, "no Sentinel names a leader"],
  [/certificate|TLS|wrong version number|packet length/, "no TLS connection to Redis comes about"],
  [/ECONNREFUSED/, "nothing listens at its address: Redis is stopped, or the address is wrong"],
  [/ENOTFOUND|EAI_AGAIN/, "the name of its host is not known"],
  [/EHOSTUNREACH|ENETUNREACH/, "its host cannot be reached"],
  [
    /ECONNRESET|EPIPE|Stream isn't writeable|connection broke|closed|not connected|disconnected/,
    "the connection to Redis is lost",
  ],
  [/no answer|did not answer|was silent|within|deadline|ETIMEDOUT|timed? ?out/i, "Redis does not answer in time"],
];

/** For people who look at a page, not for those who know the client's errors. Those are in the service's log. */
export function causeInWords(error: string): string {
  return wordings.find(([pattern]) => pattern.test(error))?.[1] ?? "Redis does not answer";
}
