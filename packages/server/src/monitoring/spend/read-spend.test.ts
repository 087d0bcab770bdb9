import type { Rule } from "sluice";
import { expect, test } from "vitest";
import { spendView } from "./read-spend.js";

const rules: Rule[] = [
  {
    id: "tokens",
    key: ["org"],
    algorithm: "gcra",
    limit: 100,
    window: "1s",
    unit: "tokens",
    cost: { attribute: "used" },
    estimate: { default: 5 },
  },
  { id: "bytes", key: ["org"], algorithm: "gcra", limit: 100, window: "1s", unit: "bytes", mode: "shadow" },
  { id: "plain", key: ["org"], algorithm: "gcra", limit: 100, window: "1s" },
];

test("units by rule, unknown where nothing was counted; models by what they cost", () => {
  const window = {
    atMs: 3_000,
    scope: "fleet" as const,
    stepMs: 1_000,
    covered: [
      { atMs: 0, coveredMs: 0, scope: "fleet" as const },
      { atMs: 1_000, coveredMs: 1_000, scope: "fleet" as const },
      { atMs: 2_000, coveredMs: 500, scope: "fleet" as const },
    ],
    series: new Map([
      ["tokens", [{ atMs: 1_000, counts: { spent: 7, held: 10, settled: 7, overrun: 1 } }]],
      ["gone", [{ atMs: 1_000, counts: { spent: 9 } }]],
      ["model:cheap", [{ atMs: 1_000, counts: { calls: 9, promptTokens: 900, microdollars: 5 } }]],
      ["model:dear", [{ atMs: 1_000, counts: { calls: 1, promptTokens: 10, microdollars: 50 } }]],
    ]),
  };
  const view = spendView(rules, window, { span: "live", learned: undefined, prices: [] });
  expect(view.rules).toEqual([
    {
      rule: "tokens",
      mode: "enforce",
      unit: "tokens",
      spent: 7,
      spentBy: [null, 7, 0],
      estimate: {
        held: 10,
        settled: 7,
        overrun: 1,
        heldBy: [null, 10, 0],
        settledBy: [null, 7, 0],
        overrunBy: [null, 1, 0],
      },
    },
    { rule: "bytes", mode: "shadow", unit: "bytes", spent: 0, spentBy: [null, 0, 0] },
  ]);
  expect(view.models.map(({ model, microdollars }) => [model, microdollars])).toEqual([
    ["dear", 50],
    ["cheap", 5],
  ]);
  const unpriced = spendView(rules, window, { span: "live", learned: undefined, prices: undefined });
  expect(unpriced.models[0]).toMatchObject({ model: "cheap", calls: 9 });
  expect(unpriced.models[0]!.microdollars).toBeUndefined();
});
