import { expect, test } from "vitest";
import { nearestName } from "./nearest-name.js";

const names = ["limit", "window", "algorithm", "minInterval"];

test.each([
  ["limt", "limit"],
  ["Limit", "limit"],
  ["windw", "window"],
  ["algoritm", "algorithm"],
  ["mininterval", "minInterval"],
  ["burst", undefined],
  ["x", undefined],
  ["limit".repeat(100), undefined],
])("%s was meant as %s", (written, meant) => {
  expect(nearestName(written, names)).toBe(meant);
});

test("of two the nearer one is meant, and the first of two that are equally near", () => {
  expect(nearestName("abcdef", ["abcxyf", "abcdeg"])).toBe("abcdeg");
  expect(nearestName("abc", ["abx", "aby"])).toBe("abx");
});
