/**
 * Reads the live view once a second for all watchers, and only while there are any.
 * Bounded: a hundred watchers. All end with the service.
 */
import type { LiveView } from "./views/stats.js";

interface Watcher {
  /** Undefined: the view could not be read this second. */
  next(view: LiveView | undefined): void;
  end(): void;
}

const MOST_WATCHERS = 100;
/** Offset within the second, when the instances have written the one before. */
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

  /** Returns a function that stops watching; undefined if there are too many watchers, or the service is shutting down. */
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
    // Do not pile up reads on a slow history; watchers get undefined instead.
    const view = this.#reading ? undefined : await this.#readOnce();
    // Timers may fire early, or in quick succession after a busy second: never send a second twice.
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
