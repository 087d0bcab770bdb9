import { expect, test } from "vitest";
import { ModelSpend, type ModelUse, modelOfSeries } from "./model-spend.js";

const use = (given: Partial<ModelUse>): ModelUse => ({
  model: "small",
  promptTokens: 10,
  completionTokens: 5,
  cachedTokens: 2,
  microdollars: 7,
  ...given,
});

test("calls add up by model", () => {
  const models = new ModelSpend();
  models.add(use({}));
  models.add(use({ promptTokens: 1, microdollars: undefined }));
  models.add(use({ model: undefined }));
  expect([...models.read()].map(([series, cells]) => [modelOfSeries(series), [...cells]])).toEqual([
    ["small", [2, 11, 10, 4, 7]],
    ["(other)", [1, 10, 5, 2, 7]],
  ]);
});

test("names invented by clients are bounded in number and length, and no call is lost", () => {
  const models = new ModelSpend();
  for (let i = 0; i < 10_000; i++) models.add(use({ model: `${i}-${"x".repeat(1_000)}` }));
  const read = [...models.read()];
  expect(read.length).toBe(51);
  expect(Math.max(...read.map(([series]) => series.length))).toBeLessThanOrEqual(86);
  expect(read.reduce((sum, [, cells]) => sum + cells[0]!, 0)).toBe(10_000);
});

test("a rule's series is no model's", () => {
  expect([modelOfSeries("model"), modelOfSeries("rule:total"), modelOfSeries("class:a:b")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
