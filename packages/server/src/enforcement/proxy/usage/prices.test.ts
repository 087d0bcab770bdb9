import { expect, test } from "vitest";
import { pricesOf } from "./prices.js";

const prices = pricesOf(
  {
    models: {
      "gpt-5": { prompt: 1.25, completion: 10, cachedPrompt: 0.125 },
      "gpt-5-mini": { prompt: 0.25, completion: 2 },
      "claude-*": { prompt: 3, completion: 15 },
      "claude-haiku-*": { prompt: 1, completion: 5 },
    },
  },
  Error,
);
const used = { prompt: 1_000, completion: 100, cachedPrompt: 0, cacheWrite: 0 };

test.each([
  ["gpt-5", 2_250],
  ["gpt-5-mini", 450],
  ["claude-sonnet-4-5", 4_500],
  ["claude-haiku-4-5", 1_500],
])("%s costs %i microdollars", (model, cost) => {
  expect(prices.microdollars(model, used)).toBe(cost);
});

test("a model that is not listed, and a call without one, cost as much as the dearest", () => {
  expect(prices.microdollars("gpt-6", used)).toBe(4_500);
  expect(prices.microdollars(undefined, used)).toBe(4_500);
});

test("a model matches one entry of the table, or none", () => {
  expect(["gpt-5", "claude-haiku-4-5", "claude-opus", "gpt-6", undefined].map((model) => prices.nameOf(model))).toEqual(
    ["gpt-5", "claude-haiku-*", "claude-*", undefined, undefined],
  );
  const others = { cachedPrompt: 0.25, cacheWrite: 0.25 };
  expect(prices.list).toContainEqual({ model: "gpt-5-mini", prompt: 0.25, completion: 2, ...others });
});

test("model names are case-insensitive, in a call and in the table", () => {
  expect([prices.nameOf("GPT-5"), prices.microdollars("Claude-Haiku-4", used)]).toEqual(["gpt-5", 1_500]);
  const price = { prompt: 1, completion: 10 };
  const capital = pricesOf({ models: { "Org/Model-*": price, Other: { prompt: 9, completion: 9 } } }, Error);
  expect([capital.nameOf("org/model-7b"), capital.nameOf("OTHER")]).toEqual(["Org/Model-*", "Other"]);
  expect(() => pricesOf({ models: { "M-1": price, "m-1": price } }, Error)).toThrow(
    "models.m-1: expected once, got it in other letters before",
  );
});

test("cached tokens have their own price, or the prompt's", () => {
  expect(prices.microdollars("gpt-5", { ...used, cachedPrompt: 800 })).toBe(250 + 100 + 1_000);
  expect(prices.microdollars("gpt-5-mini", { ...used, cachedPrompt: 800 })).toBe(450);
});

test("fractions of a microdollar are rounded up, and floating-point error never adds one", () => {
  expect(prices.microdollars("gpt-5", { ...used, prompt: 1, completion: 0 })).toBe(2);
  const tenth = pricesOf({ models: { a: { prompt: 0.1, completion: 0 } } }, Error);
  expect(tenth.microdollars("a", { ...used, prompt: 30, completion: 0 })).toBe(3);
});

test("tokens written to a cache have their own price, or the prompt's", () => {
  const cached = pricesOf({ models: { a: { prompt: 1, completion: 5, cachedPrompt: 0.1, cacheWrite: 1.25 } } }, Error);
  const usage = { prompt: 1_000, completion: 0, cachedPrompt: 600, cacheWrite: 300 };
  expect(cached.microdollars("a", usage)).toBe(100 + 60 + 375);
  expect(prices.microdollars("gpt-5-mini", usage)).toBe(250);
});

test.each([
  [undefined, "expected models: {NAME: {prompt, completion}}, with at least one model"],
  [{ models: {} }, "expected models: {NAME: {prompt, completion}}, with at least one model"],
  [{ models: { a: 5 } }, "models.a: expected {prompt, completion} in dollars per million tokens"],
  [
    { models: { a: { prompt: 1 } } },
    "models.a: completion: expected dollars per million tokens, from 0 to 1000000, got undefined",
  ],
  [
    { models: { a: { prompt: -1, completion: 1 } } },
    "models.a: prompt: expected dollars per million tokens, from 0 to 1000000, got -1",
  ],
  [
    { models: { a: { prompt: 1, output: 1 } } },
    "models.a: expected prompt, completion, cachedPrompt, cacheWrite; got output",
  ],
])("%j is refused", (document, message) => {
  expect(() => pricesOf(document, Error)).toThrow(message);
});
