/** Counts over a span of unknown length: a fixed number of steps, whose length doubles when the span outgrows them. Pure. */

const STEPS = 120;
const FIRST_STEP_MS = 1_000;

export interface Series {
  readonly startMs: number;
  readonly stepMs: number;
  /** One row per step, with one number per column. */
  readonly rows: readonly (readonly number[])[];
}

export class TimeSeries {
  readonly #columns: number;
  #stepMs = FIRST_STEP_MS;
  #startMs: number | undefined;
  #rows: number[][] = [];

  constructor(columns: number) {
    this.#columns = columns;
  }

  /** Times must not precede the first one. */
  row(atMs: number): number[] {
    this.#startMs ??= Math.floor(atMs / this.#stepMs) * this.#stepMs;
    let at = Math.floor((atMs - this.#startMs) / this.#stepMs);
    while (at >= STEPS) {
      this.#double();
      at = Math.floor((atMs - this.#startMs) / this.#stepMs);
    }
    at = Math.max(0, at);
    while (this.#rows.length <= at) this.#rows.push(new Array(this.#columns).fill(0));
    return this.#rows[at]!;
  }

  #double(): void {
    const joined: number[][] = [];
    for (let i = 0; i < this.#rows.length; i += 2) {
      const next = this.#rows[i + 1];
      joined.push(next === undefined ? this.#rows[i]! : this.#rows[i]!.map((value, column) => value + next[column]!));
    }
    this.#rows = joined;
    this.#stepMs *= 2;
  }

  read(): Series {
    return { startMs: this.#startMs ?? 0, stepMs: this.#stepMs, rows: this.#rows };
  }
}

/** Shorter spans are labelled with seconds: minutes would be (almost) the same at both ends. */
const SHORT_SPAN_MS = 600_000;

/** Labels for the start and end of a chart, in UTC. */
export function endsOf({ startMs, stepMs, rows }: Series): { from: string; to: string } {
  const spanMs = rows.length * stepMs;
  const spell = (ms: number): string =>
    new Date(ms)
      .toISOString()
      .slice(0, spanMs < SHORT_SPAN_MS ? 19 : 16)
      .replace("T", " ");
  return { from: spell(startMs), to: spell(startMs + spanMs) };
}
