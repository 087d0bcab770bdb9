/** Shared state for a single process with a memory store, with a snapshot that survives restarts. */
import type { Log } from "../log.js";
import { MOST_TEXTS, type SharedState, type Swap } from "./shared-state.js";
import { Snapshot } from "./snapshot.js";

interface MemorySharedStateOptions {
  /** Where the snapshot is stored; absent: nowhere. */
  readonly dataFolder: string | undefined;
  readonly log: Log;
  readonly now?: () => number;
}

interface KeptText {
  readonly text: string;
  readonly endsAtMs: number;
}

const FILE = "shared-state";
const EARLIER_FILE = "monitoring-history";

export class MemorySharedState implements SharedState {
  readonly #texts = new Map<string, KeptText>();
  readonly #now: () => number;
  #snapshot: Snapshot | undefined;

  static async open({ dataFolder, log, now = Date.now }: MemorySharedStateOptions): Promise<MemorySharedState> {
    const state = new MemorySharedState(now);
    if (dataFolder === undefined) return state;
    state.#snapshot = await Snapshot.open({
      folder: dataFolder,
      file: FILE,
      earlierFile: EARLIER_FILE,
      title: "the shared state",
      log,
      load: (line) => state.#load(line),
      clear: () => state.#texts.clear(),
      lines: () => state.#lines(),
    });
    return state;
  }

  private constructor(now: () => number) {
    this.#now = now;
  }

  read(name: string): Promise<string | undefined> {
    return Promise.resolve(this.#textOf(name));
  }

  readAll(prefix: string): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const name of [...this.#texts.keys()]) {
      const text = name.startsWith(prefix) ? this.#textOf(name) : undefined;
      if (text !== undefined) found.set(name, text);
    }
    return Promise.resolve(found);
  }

  swap(name: string, { was, now, keepMs }: Swap): Promise<boolean> {
    if (this.#textOf(name) !== was) return Promise.resolve(false);
    if (!this.#texts.has(name) && this.#texts.size >= MOST_TEXTS) this.#forgetExpired();
    if (!this.#texts.has(name) && this.#texts.size >= MOST_TEXTS) return Promise.resolve(false);
    this.#texts.set(name, { text: now, endsAtMs: this.#now() + keepMs });
    this.#snapshot?.changed();
    return Promise.resolve(true);
  }

  async close(): Promise<void> {
    await this.#snapshot?.close();
  }

  #textOf(name: string): string | undefined {
    const kept = this.#texts.get(name);
    if (kept === undefined || kept.endsAtMs > this.#now()) return kept?.text;
    this.#texts.delete(name);
    return undefined;
  }

  #forgetExpired(): void {
    for (const name of [...this.#texts.keys()]) this.#textOf(name);
  }

  #load(line: unknown): void {
    // A history step, from the older file that held both.
    if (Object.hasOwn(line as object, "step")) return;
    const { name, text, endsAtMs } = line as Partial<KeptText> & { name?: unknown };
    if (typeof name !== "string" || typeof text !== "string" || !Number.isSafeInteger(endsAtMs)) {
      throw new Error(`${FILE} has a line that is no text`);
    }
    this.#texts.set(name, { text, endsAtMs: endsAtMs! });
  }

  *#lines(): Generator<object> {
    this.#forgetExpired();
    // Iterate over a copy: texts may come and go while this is being written.
    for (const [name, kept] of [...this.#texts]) yield { name, ...kept };
  }
}
