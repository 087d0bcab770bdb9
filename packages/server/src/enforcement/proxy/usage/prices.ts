/**
 * The price table (`--usage-prices`): token prices by model.
 * In: YAML or JSON, in dollars per million tokens, as vendors list them, which equals microdollars per token. Out: the cost of a call in
 * whole microdollars, rounded up, or `invalid-setting` with the position of the mistake.
 */
import { readFileSync } from "node:fs";
import { SluiceError } from "sluice";
import { parse as parseYaml } from "yaml";
import { modelName } from "./call-path.js";
import type { Usage } from "./usage-reader.js";

interface Price {
  readonly prompt: number;
  readonly completion: number;
  readonly cachedPrompt: number;
  readonly cacheWrite: number;
}

/** A model's prices, in dollars per million tokens. */
interface ListedPrice extends Price {
  /** As in the table; may end in `*`. */
  readonly model: string;
}

export interface Prices {
  /** As in the table. */
  readonly list: readonly ListedPrice[];
  /** The matching entry; undefined if the model is not listed, and so costs as much as the dearest. */
  nameOf(model: string | undefined): string | undefined;
  microdollars(model: string | undefined, usage: Omit<Usage, "prompt"> & { prompt: number }): number;
}

export function readPrices(file: string): Prices {
  let document: unknown;
  try {
    document = parseYaml(readFileSync(file, "utf8"));
  } catch (error) {
    throw mistake(file, `expected YAML, got ${(error as Error).message.split("\n")[0]}`);
  }
  return pricesOf(document, (text) => mistake(file, text));
}

/** The document has the shape `{models: {NAME: {prompt, completion, cachedPrompt?, cacheWrite?}}}`; a name may end in `*`. */
export function pricesOf(document: unknown, wrong: (text: string) => Error): Prices {
  const models = isObject(document) ? document.models : undefined;
  if (!isObject(models) || Object.keys(models).length === 0)
    throw wrong("expected models: {NAME: {prompt, completion}}, with at least one model");
  const exact = new Map<string, ListedPrice>();
  const seen = new Set<string>();
  const prefixes: { prefix: string; price: ListedPrice }[] = [];
  for (const [name, given] of Object.entries(models)) {
    const price = { model: name, ...priceOf(given, (text) => wrong(`models.${name}: ${text}`)) };
    const known = modelName(name);
    if (seen.has(known)) throw wrong(`models.${name}: expected once, got it in other letters before`);
    seen.add(known);
    if (known.endsWith("*")) prefixes.push({ prefix: known.slice(0, -1), price });
    else exact.set(known, price);
  }
  // Longest prefix first: the most specific one wins.
  prefixes.sort((a, b) => b.prefix.length - a.prefix.length);
  const dearest = dearestOf([...exact.values(), ...prefixes.map(({ price }) => price)]);
  const listed = (name: string | undefined): ListedPrice | undefined => {
    if (name === undefined) return undefined;
    const model = modelName(name);
    return exact.get(model) ?? prefixes.find(({ prefix }) => model.startsWith(prefix))?.price;
  };
  return {
    list: [...exact.values(), ...prefixes.map(({ price }) => price)],
    nameOf: (model) => listed(model)?.model,
    microdollars(model, { prompt, completion, cachedPrompt, cacheWrite }) {
      const price = listed(model) ?? dearest;
      const cost =
        (prompt - cachedPrompt - cacheWrite) * price.prompt +
        cachedPrompt * price.cachedPrompt +
        cacheWrite * price.cacheWrite +
        completion * price.completion;
      // Floating-point error: 3 * 0.1 must not round up to more than 0.3.
      return Math.ceil(Number(cost.toPrecision(12)));
    },
  };
}

/** A model that is not listed must not be free, as clients choose the name. */
function dearestOf(prices: readonly Price[]): Price {
  const most = (field: keyof Price) => Math.max(...prices.map((price) => price[field]));
  return {
    prompt: most("prompt"),
    completion: most("completion"),
    cachedPrompt: most("cachedPrompt"),
    cacheWrite: most("cacheWrite"),
  };
}

const MOST_DOLLARS = 1_000_000;
const priceNames = ["prompt", "completion", "cachedPrompt", "cacheWrite"];

function priceOf(given: unknown, wrong: (text: string) => Error): Price {
  if (!isObject(given)) throw wrong("expected {prompt, completion} in dollars per million tokens");
  const unknown = Object.keys(given).find((name) => !priceNames.includes(name));
  if (unknown !== undefined) throw wrong(`expected ${priceNames.join(", ")}; got ${unknown}`);
  const dollars = (name: string, byDefault?: number): number => {
    const value = given[name] ?? byDefault;
    if (typeof value !== "number" || !(value >= 0 && value <= MOST_DOLLARS))
      throw wrong(
        `${name}: expected dollars per million tokens, from 0 to ${MOST_DOLLARS}, got ${JSON.stringify(value)}`,
      );
    return value;
  };
  const prompt = dollars("prompt");
  return {
    prompt,
    completion: dollars("completion"),
    cachedPrompt: dollars("cachedPrompt", prompt),
    cacheWrite: dollars("cacheWrite", prompt),
  };
}

function mistake(file: string, text: string): SluiceError {
  return new SluiceError("invalid-setting", `usage-prices: ${file}: ${text}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
