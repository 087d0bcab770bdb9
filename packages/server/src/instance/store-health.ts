/**
 * Whether the store answers this instance; if not, since when and why. Derived from the limiter's events, and from probes when there is no
 * traffic. Log, metrics, live view, alerts and console all read it here, so that they agree.
 *
 * The limiter's outage has hysteresis: a single late answer starts one that lasts for seconds. During an outage this file also tracks
 * whether the store is failing, or still answers most calls (`partial`): only the former deserves an alert.
 */
import type { Decision, Limiter } from "sluice";
import type { Log } from "../log.js";
import type { OutageView } from "../monitoring/views/stats.js";
import { causeInWords, isSilence } from "./failure-words.js";

const PROBE_EVERY_MS = 5_000;
/** Shorter during an outage: each probe re-evaluates whether the store is still failing. */
const JUDGE_EVERY_MS = 1_000;

export class StoreHealth {
  readonly #limiter: Limiter;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #judging: NodeJS.Timeout | undefined;
  #sinceMs: number | undefined;
  #failingSinceMs: number | undefined;
  #error = "";
  /** Decisions since the last evaluation, and how many of them a failure policy made. */
  #decided = { all: 0, byPolicy: 0 };
  /**
   * Start of an outage found by a probe. An outage found by checks is ended only by checks: a store that answers probes may still refuse
   * writes.
   */
  #probedMs: number | undefined;

  constructor({ limiter, log }: { limiter: Limiter; log: Log }) {
    this.#limiter = limiter;
    this.#log = log;
    limiter.on("degraded", (cause) => {
      this.#begin(cause);
      void this.probe();
    });
    limiter.on("recovered", () => this.#end());
    this.#timer = setInterval(() => {
      if (this.#sinceMs === undefined) void this.probe();
    }, PROBE_EVERY_MS);
    this.#timer.unref();
  }

  get state(): "up" | "degraded" {
    return this.#sinceMs === undefined ? "up" : "degraded";
  }

  /** Undefined while the store answers. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** Since when the store has failed continuously; undefined for a partial outage, too. */
  get failingSinceMs(): number | undefined {
    return this.#failingSinceMs;
  }

  /** The last raw error of the store or its client: for logs and detection. */
  get error(): string | undefined {
    return this.#error === "" ? undefined : this.#error;
  }

  view(): OutageView | undefined {
    if (this.#sinceMs === undefined) return undefined;
    const partial = this.#failingSinceMs === undefined;
    return { sinceMs: this.#sinceMs, cause: causeInWords(this.#error), partial };
  }

  /** Probes the store: without traffic, no check would notice that it is gone. */
  async probe(): Promise<void> {
    // Probe twice unless an outage is known: a single late answer is no outage.
    const answers = (await this.#limiter.ready()) || (this.#sinceMs === undefined && (await this.#limiter.ready()));
    // The first failure rarely shows the cause: whether a dropped connection means a stopped or a full Redis shows when it is tried again.
    if (!answers && this.#sinceMs !== undefined) this.#begin(this.#limiter.whyNotReady);
    if (answers && this.#probedMs !== undefined && this.#sinceMs === this.#probedMs) this.#end();
    if (this.#sinceMs !== undefined) this.#judge(answers);
    if (answers || this.#sinceMs !== undefined) return;
    this.#begin(this.#limiter.whyNotReady);
    this.#probedMs = this.#sinceMs;
  }

  close(): void {
    clearInterval(this.#timer);
    clearInterval(this.#judging);
    this.#limiter.off("decision", this.#count);
  }

  #begin(cause: unknown): void {
    this.#error = cause instanceof Error ? cause.message : String(cause);
    if (this.#sinceMs !== undefined) return;
    this.#sinceMs = Date.now();
    this.#failingSinceMs = this.#sinceMs;
    this.#log.warn("the store does not answer; failure policies do", { cause: String(cause) });
    this.#decided = { all: 0, byPolicy: 0 };
    this.#limiter.on("decision", this.#count);
    this.#judging = setInterval(() => void this.probe(), JUDGE_EVERY_MS);
    this.#judging.unref();
  }

  #end(): void {
    if (this.#sinceMs !== undefined) this.#log.info("the store answers again");
    this.#sinceMs = undefined;
    this.#failingSinceMs = undefined;
    this.#error = "";
    clearInterval(this.#judging);
    this.#limiter.off("decision", this.#count);
  }

  readonly #count = ({ degraded }: Decision): void => {
    this.#decided.all++;
    if (degraded !== undefined) this.#decided.byPolicy++;
  };

  #judge(answers: boolean): void {
    const { all, byPolicy } = this.#decided;
    this.#decided = { all: 0, byPolicy: 0 };
    // Without checks, an answered probe shows that a silence is over, but not that writes are accepted again.
    const fails =
      !answers || (all > 0 ? 2 * byPolicy >= all : this.#failingSinceMs !== undefined && !isSilence(this.#error));
    this.#failingSinceMs = fails ? (this.#failingSinceMs ?? Date.now()) : undefined;
  }
}
