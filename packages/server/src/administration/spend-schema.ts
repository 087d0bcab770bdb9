/** The response of `GET /admin/v1/spend`, in the shape of `monitoring/views/spend.ts`. */
import Type from "typebox";

const count = Type.Number({ minimum: 0 });
const text = Type.String();
const atMs = Type.Integer({ description: "Milliseconds since the epoch." });
const scope = Type.Union([Type.Literal("fleet"), Type.Literal("instance")], {
  description: "`instance`: the history cannot be read; what the instance that answers has counted itself.",
});
const series = Type.Array(Type.Union([Type.Number(), Type.Null()]), {
  description: "One value for each of `steps`; null where nothing is known.",
});

const learned = Type.Object({
  keyClass: text,
  requests: count,
  quantile: count,
  default: count,
  learned: Type.Optional(count),
  p50: Type.Optional(count),
  p90: Type.Optional(count),
  p99: Type.Optional(count),
});

const estimate = Type.Object({
  held: count,
  settled: count,
  overrun: count,
  heldBy: series,
  settledBy: series,
  overrunBy: series,
  learned: Type.Optional(Type.Array(learned, { description: "Of one rule alone, where the store answers." })),
});

export const spendView = Type.Object(
  {
    atMs,
    window: text,
    scope,
    stepMs: count,
    steps: Type.Array(Type.Object({ atMs, coveredMs: count, scope })),
    rules: Type.Array(
      Type.Object({
        rule: text,
        mode: text,
        unit: text,
        spent: Type.Optional(count),
        spentBy: Type.Optional(series),
        estimate: Type.Optional(estimate),
      }),
    ),
    models: Type.Array(
      Type.Object({
        model: text,
        calls: count,
        promptTokens: count,
        completionTokens: count,
        cachedTokens: count,
        microdollars: Type.Optional(count),
      }),
    ),
    prices: Type.Optional(
      Type.Array(
        Type.Object({ model: text, prompt: count, completion: count, cachedPrompt: count, cacheWrite: count }),
        { description: "Dollars per million tokens." },
      ),
    ),
  },
  { title: "Spend" },
);
