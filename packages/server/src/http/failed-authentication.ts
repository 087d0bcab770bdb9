/**
 * Throttles brute-force attempts: failed tokens, sessions and API tokens are counted, logged, audited, and answered slowly per address.
 * The credential is always checked first and a valid one always passes, so a client that shares an address with an attacker is not locked
 * out. Only the answers to failures are delayed: beyond its free failures an address gets a few of them per second over all its
 * connections, so guessing in parallel is no faster. A guess that would wait too long gets no answer (`isHeld` false): its connection
 * should be closed.
 *
 * Everything is bounded, however many guess: the table of addresses (LRU), delayed answers, and log lines and audit entries per minute.
 * The audit log gets a total per address and minute; addresses beyond those listed share one entry.
 */
import type { Log } from "../log.js";

type Plane = "admin" | "data";
export type Credential = "bearer" | "session" | "sign-in";

export interface FailedAttempt {
  readonly address: string;
  readonly plane: Plane;
  readonly credential: Credential;
}

export interface AttemptSum {
  /** Undefined: the total of the addresses that are not listed individually. */
  readonly address: string | undefined;
  readonly addresses: number;
  readonly failures: number;
}

/** The outcome for an address that has failed too often. */
interface Slowed {
  /** Seconds until the address is unthrottled. */
  readonly waitSeconds: number;
  /** Whether the answer was delayed and may go out now. If false, there was no capacity to delay it: do not answer. */
  readonly isHeld: boolean;
}

interface Failures {
  count: number;
  /** When its last delayed answer goes out. */
  leavesAtMs: number;
}

interface FailedAuthenticationOptions {
  readonly log: Pick<Log, "warn">;
  count(attempt: FailedAttempt): void;
  /** Writes a minute's totals to the audit log; absent if there is none. */
  readonly audit?: ((sum: AttemptSum) => Promise<void>) | undefined;
  readonly now?: () => number;
}

const MINUTE_MS = 60_000;
const MOST_ADDRESSES = 10_000;
/** Audit entries, and log lines, per minute. */
export const MOST_LISTED = 20;
/** Failures per address and minute that are answered at once: people mistype. */
export const FREE_FAILURES = 10;
/** Minimum delay of an answer. */
const HOLD_MS = 1_000;
/** Minimum interval between two answers to one address. */
export const PACE_MS = 100;
/** An answer that would be delayed for longer is not given. */
export const LONGEST_HOLD_MS = 5_000;
/** Answers delayed at the same time, over all addresses. A single address can have less than a ninetieth of them. */
const MOST_HELD = 4_096;

export class FailedAuthentication {
  readonly #options: FailedAuthenticationOptions;
  readonly #now: () => number;
  /** In LRU order, oldest first. */
  readonly #failures = new Map<string, Failures>();
  /** Totals of the addresses that were evicted from the table. */
  #dropped = { addresses: 0, failures: 0 };
  #minuteEndsMs = 0;
  #held = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FailedAuthenticationOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /**
   * Records a failure. Resolves with undefined, at once, if the answer may go out as usual. If the address has failed too often in this
   * minute, resolves when its answer is due; the connection should then be closed.
   */
  async note(attempt: FailedAttempt): Promise<Slowed | undefined> {
    const { address } = attempt;
    this.#options.count(attempt);
    this.#startMinute();
    const failures = this.#failures.get(address) ?? { count: 0, leavesAtMs: 0 };
    failures.count++;
    if (failures.count === 1 && this.#failures.size < MOST_LISTED) {
      this.#options.log.warn("authentication failed", { ...attempt });
    }
    this.#failures.delete(address);
    this.#failures.set(address, failures);
    if (this.#failures.size > MOST_ADDRESSES) this.#dropOldest();
    // Sessions are signed and cannot be guessed; a dashboard whose session has expired must get a plain 401.
    if (failures.count <= FREE_FAILURES || attempt.credential === "session") return undefined;
    const waitSeconds = Math.max(1, Math.ceil((this.#minuteEndsMs - this.#now()) / 1_000));
    return { waitSeconds, isHeld: await this.#hold(failures) };
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

  async #hold(failures: Failures): Promise<boolean> {
    const nowMs = this.#now();
    const leavesAtMs = Math.max(nowMs + HOLD_MS, failures.leavesAtMs + PACE_MS);
    if (leavesAtMs - nowMs > LONGEST_HOLD_MS || this.#held >= MOST_HELD) return false;
    failures.leavesAtMs = leavesAtMs;
    this.#held++;
    await new Promise<void>((resolve) => setTimeout(resolve, leavesAtMs - nowMs).unref());
    this.#held--;
    return true;
  }

  #dropOldest(): void {
    const [address, { count }] = this.#failures.entries().next().value!;
    this.#failures.delete(address);
    this.#dropped.addresses++;
    this.#dropped.failures += count;
  }

  /** End of the minute: logs and audits the totals, and starts counting anew. */
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

  /** The addresses with the most failures, then the rest as one entry. */
  #takeSums(): AttemptSum[] {
    const byFailures = [...this.#failures].sort(([, a], [, b]) => b.count - a.count);
    const { addresses, failures } = this.#dropped;
    this.#failures.clear();
    this.#dropped = { addresses: 0, failures: 0 };
    const others = byFailures
      .slice(MOST_LISTED)
      .reduce((sum, [, { count }]) => ({ addresses: sum.addresses + 1, failures: sum.failures + count }), {
        addresses,
        failures,
      });
    const listed = byFailures
      .slice(0, MOST_LISTED)
      .map(([address, { count }]) => ({ address, addresses: 1, failures: count }));
    return others.addresses === 0 ? listed : [...listed, { address: undefined, ...others }];
  }
}
