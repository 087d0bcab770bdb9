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
const used = { prompt: 1_000, completion: 100, cachedPrompt: 0 };

test.each([
  ["gpt-5", 2_250],
  ["gpt-5-mini", 450],
  ["claude-sonnet-4-5", 4_500],
  ["claude-haiku-4-5", 1_500],
])("%s costs %i microdollars", (model, cost) => {
  expect(prices.microdollars(model, used)).toBe(cost);
});

test("a model that is not listed, and a call without one, cost as the dearest", () => {
  expect(prices.microdollars("GPT-5", used)).toBe(4_500);
  expect(prices.microdollars(undefined, used)).toBe(4_500);
});

test("a model falls under one entry of the table, or none", () => {
  expect(["gpt-5", "claude-haiku-4-5", "claude-opus", "GPT-5", undefined].map((model) => prices.nameOf(model))).toEqual(
    ["gpt-5", "claude-haiku-*", "claude-*", undefined, undefined],
  );
  expect(prices.list).toContainEqual({ model: "gpt-5-mini", prompt: 0.25, completion: 2, cachedPrompt: 0.25 });
});

test("tokens from a cache have their own price, or the prompt's", () => {
  expect(prices.microdollars("gpt-5", { ...used, cachedPrompt: 800 })).toBe(250 + 100 + 1_000);
  expect(prices.microdollars("gpt-5-mini", { ...used, cachedPrompt: 800 })).toBe(450);
});

test("part of a microdollar is rounded up, and no binary fraction adds one", () => {
  expect(prices.microdollars("gpt-5", { prompt: 1, completion: 0, cachedPrompt: 0 })).toBe(2);
  const tenth = pricesOf({ models: { a: { prompt: 0.1, completion: 0 } } }, Error);
  expect(tenth.microdollars("a", { prompt: 30, completion: 0, cachedPrompt: 0 })).toBe(3);
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
  [{ models: { a: { prompt: 1, output: 1 } } }, "models.a: expected prompt, completion and cachedPrompt, got output"],
])("%j is refused", (document, message) => {
  expect(() => pricesOf(document, Error)).toThrow(message);
});
