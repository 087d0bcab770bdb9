/**
 * The price table of `--usage-prices`: what a token costs, by model.
 * In: YAML or JSON, in dollars per million tokens, as vendors list them: which is microdollars a token. Out: the cost of a call in whole
 * microdollars, rounded up, or `invalid-setting` with the place of the mistake.
 */
import { readFileSync } from "node:fs";
import { SluiceError } from "sluice";
import { parse as parseYaml } from "yaml";
import type { Usage } from "./usage-reader.js";

interface Price {
  readonly prompt: number;
  readonly completion: number;
  readonly cachedPrompt: number;
}

/** What a model costs, in dollars per million tokens. */
interface ListedPrice extends Price {
  /** As the table has it; it may end in `*`. */
  readonly model: string;
}

export interface Prices {
  /** As the table has them. */
  readonly list: readonly ListedPrice[];
  /** The entry that a model falls under; undefined: it is not listed, and costs as much as the dearest. */
  nameOf(model: string | undefined): string | undefined;
  microdollars(
    model: string | undefined,
    usage: Pick<Usage, "completion" | "cachedPrompt"> & { prompt: number },
  ): number;
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

/** The document's shape is `{models: {NAME: {prompt, completion, cachedPrompt?}}}`; a name may end in `*`. */
export function pricesOf(document: unknown, wrong: (text: string) => Error): Prices {
  const models = isObject(document) ? document.models : undefined;
  if (!isObject(models) || Object.keys(models).length === 0)
    throw wrong("expected models: {NAME: {prompt, completion}}, with at least one model");
  const exact = new Map<string, ListedPrice>();
  const prefixes: { prefix: string; price: ListedPrice }[] = [];
  for (const [name, given] of Object.entries(models)) {
    const price = { model: name, ...priceOf(given, (text) => wrong(`models.${name}: ${text}`)) };
    if (name.endsWith("*")) prefixes.push({ prefix: name.slice(0, -1), price });
    else exact.set(name, price);
  }
  // The longest prefix is the most specific.
  prefixes.sort((a, b) => b.prefix.length - a.prefix.length);
  const dearest = dearestOf([...exact.values(), ...prefixes.map(({ price }) => price)]);
  const listed = (model: string | undefined): ListedPrice | undefined =>
    model === undefined
      ? undefined
      : (exact.get(model) ?? prefixes.find(({ prefix }) => model.startsWith(prefix))?.price);
  return {
    list: [...exact.values(), ...prefixes.map(({ price }) => price)],
    nameOf: (model) => listed(model)?.model,
    microdollars(model, { prompt, completion, cachedPrompt }) {
      const price = listed(model) ?? dearest;
      const cost =
        (prompt - cachedPrompt) * price.prompt + cachedPrompt * price.cachedPrompt + completion * price.completion;
      // Binary fractions: 3 * 0.1 must not round up to one more than 0.3.
      return Math.ceil(Number(cost.toPrecision(12)));
    },
  };
}

/** A model that the table does not list is not free: a client could name one. */
function dearestOf(prices: readonly Price[]): Price {
  const most = (field: keyof Price) => Math.max(...prices.map((price) => price[field]));
  return { prompt: most("prompt"), completion: most("completion"), cachedPrompt: most("cachedPrompt") };
}

const MOST_DOLLARS = 1_000_000;

function priceOf(given: unknown, wrong: (text: string) => Error): Price {
  if (!isObject(given)) throw wrong("expected {prompt, completion} in dollars per million tokens");
  const unknown = Object.keys(given).find((name) => !["prompt", "completion", "cachedPrompt"].includes(name));
  if (unknown !== undefined) throw wrong(`expected prompt, completion and cachedPrompt, got ${unknown}`);
  const dollars = (name: string, byDefault?: number): number => {
    const value = given[name] ?? byDefault;
    if (typeof value !== "number" || !(value >= 0 && value <= MOST_DOLLARS))
      throw wrong(
        `${name}: expected dollars per million tokens, from 0 to ${MOST_DOLLARS}, got ${JSON.stringify(value)}`,
      );
    return value;
  };
  const prompt = dollars("prompt");
  return { prompt, completion: dollars("completion"), cachedPrompt: dollars("cachedPrompt", prompt) };
}

function mistake(file: string, text: string): SluiceError {
  return new SluiceError("invalid-setting", `usage-prices: ${file}: ${text}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
