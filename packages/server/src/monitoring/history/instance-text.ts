/** A text in the history that only this instance writes, under a name of its own; compare-and-swap finds out when it was lost. */
import type { History } from "./history.js";

export class InstanceText {
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
