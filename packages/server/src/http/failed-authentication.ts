/**
 * Requests that came with a wrong token, session or API token: counted, logged, audited, and slowed by address.
 * The token is always compared first, and a right one always passes: a client that shares an address with a guesser is not locked out.
 *
 * Bounded, however many guess: addresses in a table (LRU), answers that are held back, log lines and audit entries a minute.
 * The audit log gets the sum per address and minute; addresses beyond those listed are summed in one entry.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../log.js";

type Plane = "admin" | "data";
export type Credential = "bearer" | "session" | "sign-in";

interface FailedAttempt {
  readonly address: string;
  readonly plane: Plane;
  readonly credential: Credential;
}

export interface AttemptSum {
  /** Undefined: addresses beyond those listed one by one. */
  readonly address: string | undefined;
  readonly addresses: number;
  readonly failures: number;
}

interface FailedAuthenticationOptions {
  readonly log: Pick<Log, "warn">;
  count(attempt: FailedAttempt): void;
  /** Keeps the sums of a minute in the audit; absent where there is none. */
  readonly audit?: ((sum: AttemptSum) => Promise<void>) | undefined;
  readonly holdMs?: number;
  readonly now?: () => number;
}

const MINUTE_MS = 60_000;
const MOST_ADDRESSES = 10_000;
/** Rows of the audit, and lines of the log, a minute. */
export const MOST_LISTED = 20;
/** Failures of one address in a minute that are answered at once: people mistype. */
export const FREE_FAILURES = 10;
/** Answers held back at the same time; beyond them guesses are answered at once, and their connection ends. */
const MOST_HELD = 256;
const HOLD_MS = 1_000;

export class FailedAuthentication {
  readonly #options: FailedAuthenticationOptions;
  readonly #now: () => number;
  /** By address, oldest first. */
  readonly #failures = new Map<string, number>();
  /** Failures of addresses that no longer fit the table. */
  #dropped = { addresses: 0, failures: 0 };
  #minuteEndsMs = 0;
  #held = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FailedAuthenticationOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /**
   * Notes a failure. Resolves with undefined where the answer may go out as usual, at once; where the address has failed too often in this
   * minute, after a while and with the seconds until it is free again: the connection should end then.
   */
  async note(attempt: FailedAttempt): Promise<number | undefined> {
    const { address } = attempt;
    this.#options.count(attempt);
    this.#startMinute();
    const failures = (this.#failures.get(address) ?? 0) + 1;
    if (failures === 1 && this.#failures.size < MOST_LISTED) {
      this.#options.log.warn("authentication failed", { ...attempt });
    }
    this.#failures.delete(address);
    this.#failures.set(address, failures);
    if (this.#failures.size > MOST_ADDRESSES) this.#dropOldest();
    // A session is signed and cannot be guessed; a dashboard whose session is over must hear 401 and nothing else.
    if (failures <= FREE_FAILURES || attempt.credential === "session") return undefined;
    const waitSeconds = Math.max(1, Math.ceil((this.#minuteEndsMs - this.#now()) / 1_000));
    await this.#hold();
    return waitSeconds;
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#tellMinute();
  }

  #startMinute(): void {
    if (this.#timer !== undefined) return;
    this.#minuteEndsMs = this.#now() + MINUTE_MS;
    this.#timer = setTimeout(() => void this.#tellMinute(), MINUTE_MS);
    this.#timer.unref();
  }

  async #hold(): Promise<void> {
    if (this.#held >= MOST_HELD) return;
    this.#held++;
    await sleep(this.#options.holdMs ?? HOLD_MS, undefined, { ref: false });
    this.#held--;
  }

  #dropOldest(): void {
    const [address, failures] = this.#failures.entries().next().value!;
    this.#failures.delete(address);
    this.#dropped.addresses++;
    this.#dropped.failures += failures;
  }

  /** The end of a minute: its sums go to the log and to the audit, and counting begins anew. */
  async #tellMinute(): Promise<void> {
    this.#timer = undefined;
    const { audit, log } = this.#options;
    const sums = this.#takeSums();
    if (sums.length === 0) return;
    const failures = sums.reduce((sum, one) => sum + one.failures, 0);
    const addresses = sums.reduce((sum, one) => sum + one.addresses, 0);
    log.warn("authentication failed: the minute's sum", { failures, addresses });
    for (const sum of audit === undefined ? [] : sums) {
      await audit!(sum).catch((error: unknown) =>
        log.warn("failed authentication could not be recorded", { error: String(error) }),
      );
    }
  }

  /** The addresses that failed most, then the others in one. */
  #takeSums(): AttemptSum[] {
    const byFailures = [...this.#failures].sort(([, a], [, b]) => b - a);
    const { addresses, failures } = this.#dropped;
    this.#failures.clear();
    this.#dropped = { addresses: 0, failures: 0 };
    const others = byFailures
      .slice(MOST_LISTED)
      .reduce((sum, [, count]) => ({ addresses: sum.addresses + 1, failures: sum.failures + count }), {
        addresses,
        failures,
      });
    const listed = byFailures
      .slice(0, MOST_LISTED)
      .map(([address, count]) => ({ address, addresses: 1, failures: count }));
    return others.addresses === 0 ? listed : [...listed, { address: undefined, ...others }];
  }
}
