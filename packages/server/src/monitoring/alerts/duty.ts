/**
 * Which instance watches: one at a time, so that one trouble is one message. Duty is a text in the history that its holder prolongs;
 * when the holder is gone the text ends by itself, and the next instance that looks takes over.
 */
import type { History } from "../history/history.js";

/** `alone`: the history cannot be written, so nobody can know of the others; each instance then watches what it can see itself. */
export type Duty = "watching" | "standing-by" | "alone";

const NAME = "alerts:duty";

export class WatchDuty {
  readonly #history: History;
  readonly #instance: string;
  readonly #keepMs: number;

  constructor(options: { history: History; instance: string; keepMs: number }) {
    this.#history = options.history;
    this.#instance = options.instance;
    this.#keepMs = options.keepMs;
  }

  async ask(): Promise<Duty> {
    const keep = { now: this.#instance, keepMs: this.#keepMs };
    try {
      if (await this.#history.swapText(NAME, { was: this.#instance, ...keep })) return "watching";
      return (await this.#history.swapText(NAME, { was: undefined, ...keep })) ? "watching" : "standing-by";
    } catch {
      return "alone";
    }
  }

  /** Lets the next one take over at once. */
  async give(): Promise<void> {
    await this.#history.swapText(NAME, { was: this.#instance, now: this.#instance, keepMs: 1 }).catch(() => false);
  }
}
