/**
 * The live view, read once a second for all watchers, and only while there is one.
 * Bounded: a hundred watchers. Each ends when the service does.
 */
import type { LiveView } from "./views/stats.js";

interface Watcher {
  /** Undefined: the view could not be read this second. */
  next(view: LiveView | undefined): void;
  end(): void;
}

const MOST_WATCHERS = 100;
/** After the second's beginning, when the instances have written the one before. */
const READ_AT_MS = 400;

export class LiveFeed {
  readonly #read: () => Promise<LiveView>;
  readonly #watchers = new Set<Watcher>();
  #timer: NodeJS.Timeout | undefined;
  #reading = false;
  #toldMs = 0;
  #closed = false;

  constructor(read: () => Promise<LiveView>) {
    this.#read = read;
  }

  /** How to stop; undefined if there are too many, or the service is ending. */
  watch(watcher: Watcher): (() => void) | undefined {
    if (this.#closed || this.#watchers.size >= MOST_WATCHERS) return undefined;
    this.#watchers.add(watcher);
    if (this.#timer === undefined) this.#schedule();
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#stop();
    };
  }

  close(): void {
    this.#closed = true;
    this.#stop();
    for (const watcher of [...this.#watchers]) watcher.end();
    this.#watchers.clear();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(): void {
    const sinceMs = (Date.now() - READ_AT_MS) % 1_000;
    this.#timer = setTimeout(() => {
      this.#schedule();
      void this.#tell();
    }, 1_000 - sinceMs);
    this.#timer.unref();
  }

  async #tell(): Promise<void> {
    // A history that answers late is not asked again meanwhile; watchers hear that nothing came.
    const view = this.#reading ? undefined : await this.#readOnce();
    // A timer may fire early, or two of them close together after a busy second: no second is sent twice.
    if (view !== undefined && view.atMs === this.#toldMs) return;
    this.#toldMs = view?.atMs ?? this.#toldMs;
    for (const watcher of [...this.#watchers]) watcher.next(view);
  }

  async #readOnce(): Promise<LiveView | undefined> {
    this.#reading = true;
    try {
      return await this.#read();
    } catch {
      return undefined;
    } finally {
      this.#reading = false;
    }
  }
}
