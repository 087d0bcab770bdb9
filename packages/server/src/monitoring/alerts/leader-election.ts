/**
 * Which instance watches: one at a time, so that one trouble is one message. Leadership is a text in the history that its holder prolongs;
 * when the holder is gone the text ends by itself, and the next instance that looks takes over.
 */
import type { History } from "../history/history.js";

/** `alone`: the history cannot be written, so no instance knows of the others; each then evaluates what it can see itself. */
export type Leadership = "leader" | "follower" | "alone";

/** Older versions run for the same name: an upgrade must not elect two. */
const NAME = "alerts:duty";

export class LeaderElection {
  readonly #history: History;
  readonly #instance: string;
  readonly #keepMs: number;

  constructor(options: { history: History; instance: string; keepMs: number }) {
    this.#history = options.history;
    this.#instance = options.instance;
    this.#keepMs = options.keepMs;
  }

  async ask(): Promise<Leadership> {
    const keep = { now: this.#instance, keepMs: this.#keepMs };
    try {
      if (await this.#history.swapText(NAME, { was: this.#instance, ...keep })) return "leader";
      return (await this.#history.swapText(NAME, { was: undefined, ...keep })) ? "leader" : "follower";
    } catch {
      return "alone";
    }
  }

  /** The next instance that asks takes over at once. */
  async resign(): Promise<void> {
    await this.#history.swapText(NAME, { was: this.#instance, now: this.#instance, keepMs: 1 }).catch(() => false);
  }
}
