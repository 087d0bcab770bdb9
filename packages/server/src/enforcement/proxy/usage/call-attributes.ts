/**
 * The attributes that rules see for a call: estimates before it, real usage after it. Pure.
 * The names are the same for every vendor: `docs/llm-gateway.md` lists them.
 */
import type { Attributes } from "sluice";
import type { CallFacts } from "./call-reader.js";
import type { Prices } from "./prices.js";
import type { Usage } from "./usage-reader.js";

export function estimates(facts: CallFacts, prices: Prices | undefined): Attributes {
  const { model, isStream: stream, maxTokens, promptTokens } = facts;
  const attributes: Record<string, Attributes[string]> = { stream, estimated_prompt_tokens: promptTokens };
  if (model !== undefined && model !== "") attributes.model = model;
  // Without a bound the answer may have any length: the limiter's learned quantile of similar calls is then the better estimate.
  if (maxTokens === undefined) return attributes;
  attributes.max_tokens = maxTokens;
  attributes.estimated_total_tokens = promptTokens + maxTokens;
  if (prices !== undefined) {
    const most = { prompt: promptTokens, completion: maxTokens, cachedPrompt: 0, cacheWrite: 0 };
    attributes.estimated_cost_microdollars = prices.microdollars(model, most);
  }
  return attributes;
}

interface Ended {
  readonly facts: CallFacts | undefined;
  readonly prices: Prices | undefined;
  /** Absent: there was no answer. */
  readonly usage?: Usage;
}

export function settlement({ facts, prices, usage }: Ended): Attributes {
  const prompt = usage?.prompt ?? facts?.promptTokens ?? 0;
  const completion = usage?.completion ?? 0;
  const cachedPrompt = usage?.cachedPrompt ?? 0;
  const cacheWrite = usage?.cacheWrite ?? 0;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    cached_tokens: cachedPrompt,
    ...(prices !== undefined && {
      cost_microdollars: prices.microdollars(facts?.model, { prompt, completion, cachedPrompt, cacheWrite }),
    }),
  };
}
