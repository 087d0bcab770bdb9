/**
 * Usage of language models, by model: calls, tokens, money. Counts only grow; the history stores them.
 * Clients choose model names: with a price table its names are used, otherwise the first fifty; the rest are counted together.
 */
import type { Counted } from "../history/history.js";

/** One finished call. */
export interface ModelUse {
  /** As in the price table, or else in the call; undefined: neither. */
  readonly model: string | undefined;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  /** Absent without a price table. */
  readonly microdollars: number | undefined;
}

const MOST_MODELS = 50;
const LONGEST_NAME = 80;
const OTHER_MODELS = "(other)";
const PREFIX = "model:";

/** In the order of the cells. */
export const modelNames = [
  "calls",
  "promptTokens",
  "completionTokens",
  "cachedTokens",
  "microdollars",
] as const satisfies readonly Counted[];

/** Undefined if it is not a model's series. */
export function modelOfSeries(series: string): string | undefined {
  return series.startsWith(PREFIX) ? series.slice(PREFIX.length) : undefined;
}

export class ModelSpend {
  readonly #byModel = new Map<string, Float64Array>();

  add({ model, promptTokens, completionTokens, cachedTokens, microdollars }: ModelUse): void {
    const cells = this.#cellsOf((model ?? OTHER_MODELS).slice(0, LONGEST_NAME));
    const added = [1, promptTokens, completionTokens, cachedTokens, microdollars ?? 0];
    for (const [i, value] of added.entries()) cells[i]! += value;
  }

  *read(): Generator<[series: string, cells: Float64Array]> {
    for (const [model, cells] of this.#byModel) yield [`${PREFIX}${model}`, cells];
  }

  #cellsOf(model: string): Float64Array {
    const isKnown = this.#byModel.has(model) || this.#byModel.size < MOST_MODELS;
    const name = isKnown ? model : OTHER_MODELS;
    const cells = this.#byModel.get(name) ?? new Float64Array(modelNames.length);
    this.#byModel.set(name, cells);
    return cells;
  }
}
