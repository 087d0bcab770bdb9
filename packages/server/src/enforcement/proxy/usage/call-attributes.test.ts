import { expect, test } from "vitest";
import { estimates, settlement } from "./call-attributes.js";
import { pricesOf } from "./prices.js";

const prices = pricesOf({ models: { m: { prompt: 1, completion: 10 } } }, Error);
const facts = {
  model: "m",
  isStream: true,
  maxTokens: 50,
  promptTokens: 100,
  isBackground: false,
  askForUsage: undefined,
};

test("a call with a token bound has all estimates", () => {
  expect(estimates(facts, prices)).toEqual({
    model: "m",
    stream: true,
    max_tokens: 50,
    estimated_prompt_tokens: 100,
    estimated_total_tokens: 150,
    estimated_cost_microdollars: 600,
  });
});

test("without a bound, model or prices no figure is invented", () => {
  expect(estimates({ ...facts, maxTokens: undefined, model: undefined }, prices)).toEqual({
    stream: true,
    estimated_prompt_tokens: 100,
  });
  expect(estimates(facts, undefined)).not.toHaveProperty("estimated_cost_microdollars");
});

test("usage is what the server reports, or else the estimate of the prompt", () => {
  const usage = { prompt: 90, completion: 7, cachedPrompt: 10, cacheWrite: 0 };
  expect(settlement({ facts, prices, usage })).toEqual({
    prompt_tokens: 90,
    completion_tokens: 7,
    total_tokens: 97,
    cached_tokens: 10,
    cost_microdollars: 160,
  });
  expect(settlement({ facts, prices: undefined, usage: { ...usage, prompt: undefined } })).toMatchObject({
    prompt_tokens: 100,
    total_tokens: 107,
  });
  expect(settlement({ facts, prices })).toMatchObject({
    prompt_tokens: 100,
    completion_tokens: 0,
    cost_microdollars: 100,
  });
  expect(settlement({ facts: undefined, prices: undefined })).toMatchObject({ total_tokens: 0 });
});
