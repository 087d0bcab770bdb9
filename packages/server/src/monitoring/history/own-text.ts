/** A text of the history that only this instance writes, under a name of its own. */
import type { History } from "./history.js";

export class OwnText {
  readonly #history: History;
  readonly #name: string;
  #last: string | undefined;

  constructor(history: History, name: string) {
    this.#history = history;
    this.#name = name;
  }

  /** Rejects where the history cannot be reached. */
  async write(text: string, keepMs: number): Promise<void> {
    if (await this.#history.swapText(this.#name, { was: this.#last, now: text, keepMs })) {
      this.#last = text;
      return;
    }
    // It has expired, was lost with Redis, or a write that seemed to fail was done.
    const was = await this.#history.readText(this.#name);
    this.#last = (await this.#history.swapText(this.#name, { was, now: text, keepMs })) ? text : was;
  }
}
