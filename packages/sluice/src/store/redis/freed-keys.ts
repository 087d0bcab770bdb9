/**
 * Spreads which counters got room again other than by time (a refund, an undo, a reset) among the instances, so that a refusal cached by
 * one of them ends everywhere. Each instance notes the keys in Redis, and reads what all have noted at most twice a second, while it
 * answers from cached refusals.
 *
 * What is known is expressed as an instant: everything freed until then (minus the latency of a read) has been seen. An instance that has
 * not read for longer than keys are kept forgets everything.
 */
import { FREED_KEY } from "../../keys.js";
import type { RedisCalls } from "./calls.js";
import { numbersNamed } from "./script-reply.js";

/** Keys are collected for this long and noted in one call. */
const COLLECT_MS = 50;
/** More keys than this at once are noted as "all". */
const MOST_COLLECTED = 256;
const ALL = "*";
const RETRY_MS = 1_000;
/** Reads nothing: no key is noted a thousand years ahead. */
const NOTHING_READ = 31_536_000_000_000;
const READ_EVERY_MS = 500;
/** How long freed.lua keeps keys, minus the time that a read may take. */
const KEPT_MS = 8_000;
/** Reads overlap by this much: a refusal decided before a key was freed may be cached after the freed key was read. */
const OVERLAP_MS = 2_000;

export class FreedKeys {
  readonly #calls: RedisCalls;
  readonly #forget: (keys: readonly string[] | undefined) => void;
  readonly #collected = new Set<string>();
  #collecting: NodeJS.Timeout | undefined;
  #isReading = false;
  #isClosed = false;
  /** When the last successful read began. */
  #heardAtMonotonicMs = Number.NEGATIVE_INFINITY;
  #heardAtServerMs = 0;

  /** `forget`: called with the keys that were freed; undefined means all. */
  constructor(calls: RedisCalls, forget: (keys: readonly string[] | undefined) => void) {
    this.#calls = calls;
    this.#forget = forget;
  }

  /** Notes keys for the other instances, in the background. */
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

  /** Until when all freed keys are known. If that is some time ago, reads the rest in the background. */
  heardUntilMonotonicMs(nowMonotonicMs: number): number {
    if (nowMonotonicMs - this.#heardAtMonotonicMs >= READ_EVERY_MS && !this.#isReading) void this.#read(nowMonotonicMs);
    return this.#heardAtMonotonicMs;
  }

  /** Flushes what was collected. */
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
      const reply = await this.#calls.run("freed", [FREED_KEY], [since]);
      const serverMs = numbersNamed(reply, "now_ms")[0]!;
      const keys = (reply as unknown[]).slice(1);
      const isBack = serverMs < this.#heardAtServerMs;
      const freed = keys.map(String);
      if (isGap || isBack || freed.includes(ALL)) this.#forget(undefined);
      else if (freed.length > 0) this.#forget(freed);
      this.#heardAtServerMs = serverMs;
      this.#heardAtMonotonicMs = nowMonotonicMs;
    } catch {
      // Refusals are not answered from the cache until a read succeeds.
    } finally {
      this.#isReading = false;
    }
  }
}
