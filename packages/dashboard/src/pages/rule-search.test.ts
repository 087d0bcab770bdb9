import { expect, test } from "vitest";
import type { Rule } from "../api/shapes.js";
import { matcher } from "./rule-search.js";

const rule: Rule = {
  id: "api-per-user",
  description: "Free tier",
  key: ["user"],
  algorithm: "rolling-window",
  limit: 100,
  window: "1m",
  match: { path: "/v1/**" },
  overrides: [{ match: { user: "acme" }, limit: 5 }],
};

test("every word must occur, in any field and in any case", () => {
  expect(["", "  ", "FREE", "user rolling", "/v1/", "free 100"].map((search) => matcher(search)(rule))).toEqual(
    Array(6).fill(true),
  );
  expect(["free paid", "gcra"].map((search) => matcher(search)(rule))).toEqual([false, false]);
});

test("a word is literal, not a pattern", () => {
  expect(matcher("/v1/**")(rule)).toBe(true);
  expect(matcher("u.er")(rule)).toBe(false);
});

test("overrides are not searched", () => {
  expect(matcher("acme")(rule)).toBe(false);
});
