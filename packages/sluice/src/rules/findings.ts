/**
 * The mistakes of a rule document as they are found: the first of them in words, the others counted. A document may hold a
 * hundred thousand, and people read few of them; to word and to send them all would cost more than to find them.
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

  /** The message is made only if it is listed. */
  add(path: string, message: string | (() => string)): void {
    if (this.#mistakes.length === MOST_MISTAKES) this.#more++;
    else this.#mistakes.push({ path, message: typeof message === "string" ? message : message() });
  }

  /** With a last one that tells how many more there are. */
  list(): Mistake[] {
    if (this.#more === 0) return this.#mistakes;
    return [...this.#mistakes, { path: "document", message: `and ${this.#more} more mistakes` }];
  }
}
