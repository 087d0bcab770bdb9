/** Counts over a span that is not known before: a fixed number of steps, whose length doubles when the span outgrows them. Pure. */

const STEPS = 120;
const FIRST_STEP_MS = 1_000;

export interface Series {
  readonly startMs: number;
  readonly stepMs: number;
  /** One row a step: one number for each column. */
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

  /** Times must not go back before the first. */
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

/** To the second where a minute would be the same at both ends, or nearly. */
const SHORT_SPAN_MS = 600_000;

/** Where a chart begins and ends, in UTC. */
export function endsOf({ startMs, stepMs, rows }: Series): { from: string; to: string } {
  const spanMs = rows.length * stepMs;
  const spell = (ms: number): string =>
    new Date(ms)
      .toISOString()
      .slice(0, spanMs < SHORT_SPAN_MS ? 19 : 16)
      .replace("T", " ");
  return { from: spell(startMs), to: spell(startMs + spanMs) };
}
