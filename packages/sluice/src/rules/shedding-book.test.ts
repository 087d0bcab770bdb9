import { expect, test } from "vitest";
import { runAtOnce, Stride } from "../time-slices.js";
import type { SheddingRule } from "./rule.js";
import { SheddingBook } from "./shedding-book.js";

const bookOf = (...rules: object[]): SheddingBook => {
  const whole = rules.map((rule, i) => ({
    id: `r${i}`,
    key: [],
    algorithm: "load-shedding",
    signal: "inflight",
    ...rule,
  }));
  return runAtOnce(SheddingBook.compiling(whole as unknown as SheddingRule[], new Stride()))!;
};

test("without rules there is no book", () => {
  expect(runAtOnce(SheddingBook.compiling([], new Stride()))).toBeUndefined();
});

test("a rule applies if its match holds and its key is present, at the gauge of its values", () => {
  const book = bookOf({ match: { path: "/v1/**" } }, { key: ["region", "upstream"] });
  expect(book.find({ path: "/v2" })).toEqual([]);
  const [both] = book.find({ region: "eu", upstream: "db", path: "/" });
  expect([both!.plan.rule, both!.gauge, both!.values]).toEqual(["r1", "region=eu&upstream=db", "eu,db"]);
  expect(book.find({ path: "/v1/x", upstream: "db" }).map(({ plan, gauge }) => [plan.rule, gauge])).toEqual([
    ["r0", ""],
  ]);
  expect(book.whyNot("r0", { path: "/v2" })).toContain("path");
  expect(book.whyNot("r0", { path: "/v1/a" })).toBeUndefined();
});

test("the class comes from the attribute; without a known one it is the default", () => {
  const book = bookOf({ class: { attribute: "c", default: "low" }, classes: { high: 2, low: 0.5 } });
  expect(book.find({ c: "high" })[0]!.classIndex).toBe(0);
  for (const attributes of [{}, { c: "unknown" }, { c: "constructor" }, { c: 7 }]) {
    expect(book.find(attributes)[0]!.classIndex).toBe(1);
  }
});

test("the fair key is the attribute's value, or empty if the request has none", () => {
  const book = bookOf({ fairBy: "tenant" });
  expect(book.find({ tenant: "t" })[0]!.fairKey).toBe("t");
  expect(book.find({})[0]!.fairKey).toBe("");
  expect(bookOf({}).find({})[0]!.fairKey).toBeUndefined();
});
