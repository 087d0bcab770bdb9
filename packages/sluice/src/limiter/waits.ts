/**
 * Requests that wait in this process for their turn (`maxWait`), bounded in number.
 * In: an admitted decision whose turn has not come. Out: resolves when it has; rejects where the caller's signal ends the wait, or the
 * limiter closes. What then happens to the turn is the limiter's business.
 */
import { SluiceError } from "../errors.js";
import type { Clock } from "../store/memory/memory-store-options.js";
import type { Decision } from "./decision.js";

/** A signal, or where to get it from if the caller has to wait: most do not. */
export type LeaveSignal = AbortSignal | (() => AbortSignal);

/** How many wait for a turn under each rule. */
export type WaitingStats = ReadonlyMap<string, number>;

/** A virtual clock has no timers: it is looked at so often. */
const LOOK_EVERY_MS = 1;

export class Waits {
  readonly #most: number;
  readonly #clock: Clock | undefined;
  readonly #byRule = new Map<string, number>();
  /** Ends each wait. */
  readonly #ends = new Set<(reason: unknown) => void>();

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

  /** Waits from now on: the turn was counted by the store's clock, some time ago, so nobody is early. */
  async untilTurn(decision: Decision, signal: LeaveSignal | undefined): Promise<void> {
    const rule = longestWait(decision);
    this.#byRule.set(rule, (this.#byRule.get(rule) ?? 0) + 1);
    const renewal = renewing(decision);
    try {
      await this.#sleep(decision.delayMs, typeof signal === "function" ? signal() : signal);
    } finally {
      clearInterval(renewal);
      const left = this.#byRule.get(rule)! - 1;
      if (left === 0) this.#byRule.delete(rule);
      else this.#byRule.set(rule, left);
    }
  }

  close(): void {
    for (const end of this.#ends) end(new SluiceError("closed", "the limiter was closed while a request waited"));
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
      if (signal?.aborted) abort();
      else {
        signal?.addEventListener("abort", abort);
        look();
      }
    });
  }
}

function longestWait({ checks, rule = "" }: Decision): string {
  let longest: { rule: string; delayMs?: number } = { rule, delayMs: 0 };
  for (const check of checks) {
    if (check.mode === "enforce" && (check.delayMs ?? 0) > longest.delayMs!) longest = check;
  }
  return longest.rule;
}

/** A place that the request holds meanwhile must not be lost: three tries a term. */
function renewing({ lease }: Decision): NodeJS.Timeout | undefined {
  if (lease === undefined) return undefined;
  const timer = setInterval(() => void lease.renew().catch(() => undefined), lease.expiresAfterMs / 3);
  timer.unref();
  return timer;
}
