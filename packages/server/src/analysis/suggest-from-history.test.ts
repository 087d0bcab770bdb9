import { expect, test } from "vitest";
import { suggestFromHistory } from "./suggest-from-history.js";

const rule = { id: "per-user", limit: 100, window: "1m" };
const key = (user: string, peakUtilisation: number, refused = 0) => ({
  rule: "per-user",
  attributes: { user },
  count: 10,
  refused,
  peakUtilisation,
});

test("limits are the peaks of the busiest keys times the headroom", () => {
  const keys = [0.1, 0.2, 0.3, 0.41].map((peak, i) => key(`u${i}`, peak));
  expect(suggestFromHistory({ rule, keys, headroom: 1.2 })).toEqual({
    rule: "per-user",
    limit: 100,
    window: "1m",
    keys: 4,
    keysRefused: 0,
    p50: 20,
    p99: 41,
    max: 41,
    limits: [
      { from: "p99", limit: 50, keysTouched: 0 },
      { from: "max", limit: 50, keysTouched: 0 },
    ],
    candidate: { limit: 50 },
  });
});

test("if keys were refused there is no candidate: their real demand is unknown", () => {
  const found = suggestFromHistory({ rule, keys: [key("a", 1, 5), key("b", 0.2)], headroom: 1.2 });
  expect(found).toMatchObject({ keysRefused: 1, max: 100 });
  expect(found.candidate).toBeUndefined();
});

test("without keys nothing is suggested", () => {
  expect(suggestFromHistory({ rule, keys: [], headroom: 1.2 })).toMatchObject({ keys: 0, limits: [] });
});
