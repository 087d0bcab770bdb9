/**
 * Replays the same requests with retries: each refused client tries again after the wait it was given, as a well-behaved client does, until
 * it passes or gives up. Refused load does not vanish; it arrives later.
 */
import type { Rule } from "sluice";
import { EventQueue } from "./event-queue.js";
import { type Arrival, Replay } from "./replay.js";

/** As common clients do: five attempts in total. */
const MOST_TRIES = 5;

interface Waiting {
  readonly arrival: Arrival;
  readonly tries: number;
}

export interface ComeBackFigures {
  readonly requests: number;
  /** All attempts, including the first ones. */
  readonly tries: number;
  readonly admittedAtOnce: number;
  readonly admittedLater: number;
  readonly gaveUp: number;
  /** Of those admitted later. */
  readonly meanWaitMs: number;
  readonly longestWaitMs: number;
}

export class ComeBack {
  readonly #replay: Replay;
  readonly #waiting = new EventQueue<Waiting>();
  #requests = 0;
  #tries = 0;
  #atOnce = 0;
  #later = 0;
  #gaveUp = 0;
  #sumWaitMs = 0;
  #longestWaitMs = 0;

  constructor(rules: readonly Rule[]) {
    this.#replay = new Replay(rules);
  }

  async add(arrival: Arrival): Promise<void> {
    await this.#retryUntil(arrival.atMs);
    this.#requests++;
    await this.#ask({ arrival, tries: 1 }, arrival.atMs);
  }

  async #retryUntil(endMs: number): Promise<void> {
    while (this.#waiting.nextMs <= endMs) {
      const { atMs, item } = this.#waiting.take()!;
      await this.#ask(item, atMs);
    }
  }

  async #ask({ arrival, tries }: Waiting, atMs: number): Promise<void> {
    this.#tries++;
    const { decision } = await this.#replay.decide({ ...arrival, atMs });
    if (decision.allowed) {
      if (tries === 1) this.#atOnce++;
      else this.#admittedLater(atMs - arrival.atMs);
    } else if (tries === MOST_TRIES || decision.reason === "cost-exceeds-limit") this.#gaveUp++;
    // A wait of 0 would retry forever at the same instant.
    else this.#waiting.add(atMs + Math.max(1, decision.retryAfterMs), { arrival, tries: tries + 1 });
  }

  #admittedLater(waitMs: number): void {
    this.#later++;
    this.#sumWaitMs += waitMs;
    this.#longestWaitMs = Math.max(this.#longestWaitMs, waitMs);
  }

  /** Processes the retries that remain after the last request. */
  async end(): Promise<ComeBackFigures> {
    await this.#retryUntil(Number.MAX_SAFE_INTEGER);
    await this.#replay.close();
    return {
      requests: this.#requests,
      tries: this.#tries,
      admittedAtOnce: this.#atOnce,
      admittedLater: this.#later,
      gaveUp: this.#gaveUp,
      meanWaitMs: this.#later === 0 ? 0 : Math.round(this.#sumWaitMs / this.#later),
      longestWaitMs: Math.round(this.#longestWaitMs),
    };
  }
}
