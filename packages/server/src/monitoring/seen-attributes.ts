/**
 * The attribute names seen in recent requests: names only, never values. A rule that needs an attribute which no request has is usually
 * misspelled, and limits nothing.
 * On the request path, so requests are sampled: the first ones of each second, then one in sixteen.
 * Bounded: 256 names, of the current and the previous day (counted from the start). If there were more, the set is marked incomplete.
 */
const MOST_NAMES = 256;
const LONGEST_NAME = 128;
const LOOKS_A_SECOND = 64;
const THEN_ONE_IN = 16;
const SECONDS_A_DAY = 86_400;

export class SeenAttributes {
  #names = new Set<string>();
  #before = new Set<string>();
  #overflowed = false;
  #overflowedBefore = false;
  #seconds = 0;
  #looks = LOOKS_A_SECOND;
  #passed = 0;

  add(attributes: Readonly<Record<string, unknown>>): void {
    if (this.#looks > 0) this.#looks--;
    else if (++this.#passed % THEN_ONE_IN !== 0) return;
    for (const name in attributes) {
      if (this.#names.has(name)) continue;
      if (this.#names.size < MOST_NAMES && name.length <= LONGEST_NAME) this.#names.add(name);
      else this.#overflowed = true;
    }
  }

  /** Called once a second. */
  nextSecond(): void {
    this.#looks = LOOKS_A_SECOND;
    if (++this.#seconds % SECONDS_A_DAY !== 0) return;
    this.#before = this.#names;
    this.#overflowedBefore = this.#overflowed;
    this.#names = new Set();
    this.#overflowed = false;
  }

  get names(): readonly string[] {
    return [...new Set([...this.#before, ...this.#names])].sort();
  }

  /** False if names were dropped. */
  get isComplete(): boolean {
    return !this.#overflowed && !this.#overflowedBefore;
  }
}
