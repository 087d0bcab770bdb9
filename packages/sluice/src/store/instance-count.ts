/**
 * How many instances share a store: each says every second that it lives, and hears how many do. What is known last is what counts when
 * the store is gone: under `onStoreFailure: local` each instance then admits its share of a limit.
 *
 * Errs on the side of too many, so that shares are too small rather than too large: a number that falls is believed only after it
 * has held for as long as the silence after which one is taken for dead. So neither a store that comes back empty nor the first
 * beat after an outage makes one instance believe that it is alone.
 */

const BEAT_EVERY_MS = 1_000;
/** Silent for this long, an instance is taken for dead. */
export const PATIENCE_MS = 3_500;

/** One beat, or the last one: how many live now, this one included until it leaves. */
export type Beat = (step: "beat" | "leave", patienceMs: number) => Promise<number>;

export class InstanceCount {
  readonly #beat: Beat;
  #heard: { atMs: number; count: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(beat: Beat) {
    this.#beat = beat;
    void this.#go();
  }

  /** How many live, as far as is known; undefined before the store was first reached. */
  get known(): number | undefined {
    return this.#heard.length === 0 ? undefined : Math.max(...this.#heard.map(({ count }) => count));
  }

  async #go(): Promise<void> {
    try {
      const count = await this.#beat("beat", PATIENCE_MS);
      this.hear(count, performance.now());
    } catch {
      // The store is away: what is known stays.
    }
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#go(), BEAT_EVERY_MS);
    this.#timer.unref();
  }

  /** What a beat told. Public for its tests: time is an argument. */
  hear(count: number, nowMs: number): void {
    const last = this.#heard.at(-1);
    const known = this.known;
    const afterSilence = last !== undefined && nowMs - last.atMs > PATIENCE_MS;
    // The others had been silent for us too, and are heard of again only as they beat.
    if (afterSilence) this.#heard = [{ atMs: nowMs, count: known! }];
    else this.#heard = this.#heard.filter(({ atMs }) => nowMs - atMs <= PATIENCE_MS);
    this.#heard.push({ atMs: nowMs, count });
  }

  /** Tells the others that their shares grow. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#beat("leave", PATIENCE_MS).catch(() => {});
  }
}
