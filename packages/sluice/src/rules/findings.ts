/**
 * The mistakes of a rule document as they are found: the first ones as messages, the others counted. A document may contain a hundred
 * thousand, and people read few of them; wording and sending all would cost more than finding them.
 */
import type { Mistake } from "../errors.js";
import { Stride } from "../time-slices.js";

const MOST_MISTAKES = 100;

export class Findings {
  readonly stride = new Stride();
  readonly #mistakes: Mistake[] = [];
  #more = 0;

  get count(): number {
    return this.#mistakes.length + this.#more;
  }

  /** The message is built only if it is listed. */
  add(path: string, message: string | (() => string)): void {
    if (this.#mistakes.length === MOST_MISTAKES) this.#more++;
    else this.#mistakes.push({ path, message: typeof message === "string" ? message : message() });
  }

  /** If there are more, the last entry is how many. */
  list(): Mistake[] {
    if (this.#more === 0) return this.#mistakes;
    return [...this.#mistakes, { path: "document", message: `and ${this.#more} more mistakes` }];
  }
}
