/**
 * The last few things by their names, at least `least` and at most twice as many. Two generations: to delete the oldest entry of a Map one
 * by one costs more with every deletion.
 */
export class LastNamed<T> {
  readonly #least: number;
  #young = new Map<string, T>();
  #old = new Map<string, T>();

  constructor(least: number) {
    this.#least = least;
  }

  get(name: string): T | undefined {
    return this.#young.get(name) ?? this.#old.get(name);
  }

  set(name: string, thing: T): void {
    if (this.#young.size >= this.#least) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(name, thing);
  }
}
