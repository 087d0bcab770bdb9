/** Counts uses naively against a limit, for the loads of the world. */
interface Metered {
  readonly algorithm: "rolling-window" | "token-bucket" | "gcra" | "fixed-window";
  readonly limit: number;
  readonly windowMs: number;
}

/** Uses as they happen, in whole ms of the store's clock, and how far they ever were beyond the limit. */
export class UseMeter {
  readonly #load: Metered;
  readonly #startMs: number;
  readonly #times: number[] = [];
  #first = 0;
  #deficit = 0;
  #lastMs = 0;
  over = 0;
  /** After the first window. */
  admitted = 0;

  constructor(load: Metered) {
    this.#load = load;
    this.#startMs = Date.UTC(2026, 0, 1) + load.windowMs;
  }

  use(units: number, atMs: number): void {
    const { algorithm, limit, windowMs } = this.#load;
    if (atMs >= this.#startMs) this.admitted += units;
    if (algorithm === "token-bucket" || algorithm === "gcra") {
      this.#deficit = Math.max(0, this.#deficit - ((atMs - this.#lastMs) * limit) / windowMs) + units;
      this.#lastMs = atMs;
      this.over = Math.max(this.over, Math.ceil(this.#deficit - limit - 1e-6));
      return;
    }
    for (let i = 0; i < units; i++) this.#times.push(atMs);
    const fromMs = algorithm === "fixed-window" ? atMs - (atMs % windowMs) - 1 : atMs - windowMs;
    while (this.#times[this.#first]! <= fromMs) this.#first++;
    this.over = Math.max(this.over, this.#times.length - this.#first - limit);
  }
}
