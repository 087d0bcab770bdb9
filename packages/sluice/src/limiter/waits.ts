/**
 * Requests that wait in this process for their turn (`maxWait`), bounded in number. In: an admitted decision whose turn has not come. Out:
 * resolves when it has; rejects if the caller's signal aborts, or the limiter closes. The limiter then decides what happens to the turn.
 */
import { SluiceError } from "../errors.js";
import type { Clock } from "../store/memory/memory-store-options.js";
import { Decision } from "./decision.js";
import { Lease } from "./lease.js";

/** A signal, or a function that makes one once the caller has to wait: most callers do not. */
export type LeaveSignal = AbortSignal | (() => AbortSignal);

/** How many requests wait for their turn under each rule. */
export type WaitingStats = ReadonlyMap<string, number>;

/** The requests of one key that wait for their turn under one rule. */
export interface WaitingKey {
  readonly rule: string;
  /** The key of the counter (`readCounterKey`). */
  readonly key: string;
  readonly waiting: number;
  /** How long the first of them has waited, and how long until the last one's turn. */
  readonly longestMs: number;
  readonly lastTurnMs: number;
}

interface Wait {
  readonly rule: string;
  readonly key: string;
  readonly beganMs: number;
  readonly endsMs: number;
}

/** A virtual clock has no timers, so it is polled this often. */
const LOOK_EVERY_MS = 1;

export class Waits {
  readonly #most: number;
  readonly #clock: Clock | undefined;
  readonly #byRule = new Map<string, number>();
  readonly #waits = new Set<Wait>();
  /** Ends each wait early. */
  readonly #ends = new Set<(reason: unknown) => void>();
  #closed = false;

  constructor(most: number, clock: Clock | undefined) {
    this.#most = most;
    this.#clock = clock;
  }

  get isFull(): boolean {
    return this.#ends.size >= this.#most;
  }

  stats(): WaitingStats {
    return this.#byRule;
  }

  /** Keys with the most waiting requests first. */
  keys(): WaitingKey[] {
    const nowMs = this.#nowMs();
    const byKey = new Map<string, WaitingKey>();
    for (const { rule, key, beganMs, endsMs } of this.#waits) {
      const other = byKey.get(key);
      byKey.set(key, {
        rule,
        key,
        waiting: (other?.waiting ?? 0) + 1,
        longestMs: Math.max(other?.longestMs ?? 0, nowMs - beganMs),
        lastTurnMs: Math.max(other?.lastTurnMs ?? 0, endsMs - nowMs),
      });
    }
    return [...byKey.values()].sort((a, b) => b.waiting - a.waiting || b.longestMs - a.longestMs);
  }

  /** The wait counts from now: the turn was computed on the store's clock some time ago, so no request goes early. */
  async untilTurn(decision: Decision, signal: LeaveSignal | undefined): Promise<void> {
    const rule = longestWait(decision);
    const key = Decision.originOf(decision).checks.find(({ plan }) => plan.rule === rule)?.key ?? "";
    const beganMs = this.#nowMs();
    const wait: Wait = { rule, key, beganMs, endsMs: beganMs + decision.delayMs };
    this.#waits.add(wait);
    this.#byRule.set(rule, (this.#byRule.get(rule) ?? 0) + 1);
    // A place that the request holds meanwhile must not expire.
    const stopRenewing = decision.lease && Lease.keep(decision.lease);
    try {
      await this.#sleep(decision.delayMs, typeof signal === "function" ? signal() : signal);
    } finally {
      stopRenewing?.();
      this.#waits.delete(wait);
      const left = this.#byRule.get(rule)! - 1;
      if (left === 0) this.#byRule.delete(rule);
      else this.#byRule.set(rule, left);
    }
  }

  close(): void {
    this.#closed = true;
    for (const end of this.#ends) end(closed());
  }

  #nowMs(): number {
    return (this.#clock ?? performance).now();
  }

  #sleep(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
    const clock = this.#clock ?? performance;
    const endsAt = clock.now() + delayMs;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const settle = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        this.#ends.delete(end);
      };
      const end = (reason: unknown): void => {
        settle();
        reject(reason);
      };
      const abort = (): void => end(signal!.reason);
      const look = (): void => {
        const leftMs = endsAt - clock.now();
        // Timers may fire a fraction of a millisecond early.
        if (leftMs > 0) timer = setTimeout(look, this.#clock === undefined ? Math.ceil(leftMs) : LOOK_EVERY_MS);
        else {
          settle();
          resolve();
        }
      };
      this.#ends.add(end);
      // The store was still asked when the limiter was closed.
      if (this.#closed) end(closed());
      else if (signal?.aborted) abort();
      else {
        signal?.addEventListener("abort", abort);
        look();
      }
    });
  }
}

function closed(): SluiceError {
  return new SluiceError("closed", "the limiter was closed while a request waited");
}

function longestWait({ checks, rule = "" }: Decision): string {
  let longest: { rule: string; delayMs?: number } = { rule, delayMs: 0 };
  for (const check of checks) {
    if (check.mode === "enforce" && (check.delayMs ?? 0) > longest.delayMs!) longest = check;
  }
  return longest.rule;
}
