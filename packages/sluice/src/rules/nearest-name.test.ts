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
])("%s was meant to be %s", (written, meant) => {
  expect(nearestName(written, names)).toBe(meant);
});

test("the nearer of two is chosen, and the first of two that are equally near", () => {
  expect(nearestName("abcdef", ["abcxyf", "abcdeg"])).toBe("abcdeg");
  expect(nearestName("abc", ["abx", "aby"])).toBe("abx");
});
