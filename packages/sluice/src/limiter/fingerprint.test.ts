import { expect, test } from "vitest";
import type { Attributes } from "../rules/rule.js";
import { fingerprintOf } from "./fingerprint.js";

const of = (attributes: Attributes, more: { cost?: number; charge?: boolean } = {}): string =>
  fingerprintOf([{ attributes, ...more }]);

test("the order of attributes does not matter, and numbers are read as text", () => {
  expect(of({ user: 42, path: "/" })).toBe(of({ path: "/", user: "42" }));
});

test("a different value, cost or kind of request has a different fingerprint", () => {
  const prints = [
    of({ user: "ann" }),
    of({ user: "ben" }),
    of({ user: "ann" }, { cost: 1 }),
    of({ user: "ann" }, { charge: true }),
    fingerprintOf([{ attributes: { user: "ann" } }, { attributes: {} }]),
    // A separator inside a value must not imitate a second attribute.
    of({ user: 'ann","path","/' }),
    of({ user: "ann", path: "/" }),
  ];
  expect(new Set(prints).size).toBe(prints.length);
  expect(prints.every((print) => /^[\w-]{22}$/.test(print))).toBe(true);
});

test("what no rule can read is absent", () => {
  expect(of({ user: "ann", tags: ["a"] as unknown as string })).toBe(of({ user: "ann" }));
});
