/**
 * Counts the instances that share a store, by heartbeat: each instance sends one every second, and the store answers how many are alive.
 * The last count is kept while the store is away: under `onStoreFailure: local` each instance then admits its share of a limit.
 *
 * Errs on the high side, so that shares are too small rather than too large (hysteresis): a lower count applies only after it has lasted as
 * long as the silence after which an instance counts as dead. So neither a store that comes back empty nor the first heartbeat after an
 * outage makes an instance believe that it is alone.
 */

const BEAT_EVERY_MS = 1_000;
/** An instance counts as dead after this much silence. */
export const PATIENCE_MS = 3_500;

/** One heartbeat, or the last one. Resolves to how many instances are alive, including this one until it leaves. */
type Beat = (step: "beat" | "leave", patienceMs: number) => Promise<number>;

/** Called when a heartbeat was answered. */
export type OnBeat = (roundTripMs: number) => void;

export class InstanceCount {
  readonly #beat: Beat;
  readonly #onBeat: OnBeat | undefined;
  #heard: { atMonotonicMs: number; count: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(beat: Beat, onBeat?: OnBeat) {
    this.#beat = beat;
    this.#onBeat = onBeat;
    void this.#go();
  }

  /** How many are alive, as far as is known; undefined before the store was first reached. */
  get known(): number | undefined {
    return this.#heard.length === 0 ? undefined : Math.max(...this.#heard.map(({ count }) => count));
  }

  async #go(): Promise<void> {
    try {
      const sentMonotonicMs = performance.now();
      const count = await this.#beat("beat", PATIENCE_MS);
      const nowMonotonicMs = performance.now();
      this.#onBeat?.(nowMonotonicMs - sentMonotonicMs);
      this.hear(count, nowMonotonicMs);
    } catch {
      // The store is away: the last count is kept.
    }
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#go(), BEAT_EVERY_MS);
    this.#timer.unref();
  }

  /** Handles the answer to a heartbeat. Public for its tests: time is an argument. */
  hear(count: number, nowMonotonicMs: number): void {
    const last = this.#heard.at(-1);
    const known = this.known;
    const afterSilence = last !== undefined && nowMonotonicMs - last.atMonotonicMs > PATIENCE_MS;
    // The store saw the other instances as silent too: it counts each again only at its next heartbeat.
    if (afterSilence) this.#heard = [{ atMonotonicMs: nowMonotonicMs, count: known! }];
    else this.#heard = this.#heard.filter(({ atMonotonicMs }) => nowMonotonicMs - atMonotonicMs <= PATIENCE_MS);
    this.#heard.push({ atMonotonicMs: nowMonotonicMs, count });
  }

  /** Leaves, so that the shares of the other instances grow. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#beat("leave", PATIENCE_MS).catch(() => {});
  }
}
