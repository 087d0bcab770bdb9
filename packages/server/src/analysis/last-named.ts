/**
 * A cache of the most recent items by name, between `least` and twice as many. Two generations, because deleting a Map's oldest entry one
 * at a time gets slower with every deletion.
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
