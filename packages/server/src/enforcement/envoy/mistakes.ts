/**
 * Collects a configuration's mistakes, bounded: they end up in logs and in answers to control planes, and a generated file can have a
 * million.
 */
const MOST = 100;
/** Long enough for a path 32 levels deep. */
const LONGEST = 1_000;

export class Mistakes {
  readonly #first: string[] = [];
  #count = 0;

  add(mistake: string): void {
    if (++this.#count > MOST) return;
    this.#first.push(mistake.length <= LONGEST ? mistake : `${mistake.slice(0, LONGEST)}…`);
  }

  get some(): boolean {
    return this.#count > 0;
  }

  /** The first ones, and the number of others. */
  list(): string[] {
    const more = this.#count - this.#first.length;
    return more === 0 ? [...this.#first] : [...this.#first, `and ${more} more mistakes`];
  }
}
