/** A shared text with a single writer, this instance; compare-and-swap detects when it was lost. */
import type { SharedState } from "./shared-state.js";

export class InstanceText {
  readonly #shared: SharedState;
  readonly #name: string;
  #last: string | undefined;

  constructor(shared: SharedState, name: string) {
    this.#shared = shared;
    this.#name = name;
  }

  /** Rejects if the shared state is unreachable. */
  async write(text: string, keepMs: number): Promise<void> {
    if (await this.#shared.swap(this.#name, { was: this.#last, now: text, keepMs })) {
      this.#last = text;
      return;
    }
    // It has expired, was lost with Redis, or a write that seemed to fail had succeeded.
    const was = await this.#shared.read(this.#name);
    this.#last = (await this.#shared.swap(this.#name, { was, now: text, keepMs })) ? text : was;
  }
}
