/**
 * Tells the instances of a fleet which counters got room again other than by time (a refund, an undo, a reset), so that
 * a refusal that one of them remembers ends everywhere. Each notes the keys in Redis, and reads at most twice a second what all have
 * noted, while it has refusals to answer from.
 *
 * What is known is stated as an instant: all that was freed until then, less a read's way, has been heard of. Who has not heard for
 * longer than keys are kept forgets everything.
 */
import { FREED_KEY } from "../../keys.js";
import type { RedisCalls } from "./calls.js";

/** Keys are collected for so long, and noted in one call. */
const COLLECT_MS = 50;
/** More than so many at once count as all. */
const MOST_COLLECTED = 256;
const ALL = "*";
const RETRY_MS = 1_000;
/** Lists nothing: no key is noted in a year to come. */
const NOTHING_READ = 31_536_000_000_000;
const READ_EVERY_MS = 500;
/** As freed.lua keeps keys, less what a read may take. */
const KEPT_MS = 8_000;
/** Reads overlap by so much: a refusal that was decided before a key was freed may be remembered after that was read. */
const OVERLAP_MS = 2_000;

export class FreedKeys {
  readonly #calls: RedisCalls;
  readonly #forget: (keys: readonly string[] | undefined) => void;
  readonly #collected = new Set<string>();
  #collecting: NodeJS.Timeout | undefined;
  #isReading = false;
  #isClosed = false;
  /** When the last read that was answered began. */
  #heardAtMonotonicMs = Number.NEGATIVE_INFINITY;
  #heardAtServerMs = 0;

  /** `forget`: is told the keys that were freed; undefined stands for all. */
  constructor(calls: RedisCalls, forget: (keys: readonly string[] | undefined) => void) {
    this.#calls = calls;
    this.#forget = forget;
  }

  /** Notes keys for the others. Nobody waits for it. */
  note(keys: readonly string[], afterMs = COLLECT_MS): void {
    for (const key of keys) {
      if (this.#collected.size === MOST_COLLECTED) {
        this.#collected.clear();
        this.#collected.add(ALL);
      }
      if (!this.#collected.has(ALL)) this.#collected.add(key);
    }
    this.#collecting ??= setTimeout(() => this.#send(), afterMs).unref();
  }

  /** How far everything that was freed is known. Asks for the rest in the background, if that is some time ago. */
  heardUntilMonotonicMs(nowMonotonicMs: number): number {
    if (nowMonotonicMs - this.#heardAtMonotonicMs >= READ_EVERY_MS && !this.#isReading) void this.#read(nowMonotonicMs);
    return this.#heardAtMonotonicMs;
  }

  /** Sends what was collected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#collecting !== undefined) await this.#send();
  }

  async #send(): Promise<void> {
    clearTimeout(this.#collecting);
    this.#collecting = undefined;
    const keys = [...this.#collected];
    this.#collected.clear();
    const noted = this.#calls.run("freed", [FREED_KEY], [NOTHING_READ, ...keys]);
    await noted.catch(() => {
      if (!this.#isClosed) this.note(keys, RETRY_MS);
    });
  }

  async #read(nowMonotonicMs: number): Promise<void> {
    this.#isReading = true;
    const isGap = nowMonotonicMs - this.#heardAtMonotonicMs > KEPT_MS;
    const since = isGap ? -OVERLAP_MS : this.#heardAtServerMs - OVERLAP_MS;
    try {
      const [now, ...keys] = (await this.#calls.run("freed", [FREED_KEY], [since])) as unknown[];
      const serverMs = Number(now);
      const isBack = serverMs < this.#heardAtServerMs;
      const freed = keys.map(String);
      if (isGap || isBack || freed.includes(ALL)) this.#forget(undefined);
      else if (freed.length > 0) this.#forget(freed);
      this.#heardAtServerMs = serverMs;
      this.#heardAtMonotonicMs = nowMonotonicMs;
    } catch {
      // Refusals are not answered from memory until a read succeeds.
    } finally {
      this.#isReading = false;
    }
  }
}
