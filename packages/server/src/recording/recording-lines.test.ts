import { expect, test } from "vitest";
import { parseLine } from "./recording-lines.js";

const decision = {
  at: 1,
  attributes: { user: "a" },
  entry: "e",
  rules: 1,
  allowed: 1,
  checks: [["r", "enforce", 1, 2, 0, 3]],
};

test("every kind of line is read", () => {
  const lines = [
    { sluice: "recording", version: 1, instance: "i", segment: 1, at: 1, store: "memory", fresh: true, hashed: [] },
    { rules: 1, count: 0 },
    { rule: { id: "r" } },
    decision,
    { at: 1, refund: "e" },
    { at: 1, release: ["e"] },
    { at: 1, renew: ["e"] },
    { at: 1, rules: 1, giveBack: [{ attributes: {} }] },
    { at: 1, rules: 1, reset: "r", attributes: {} },
    { at: 1, rules: 1, block: "r", lengthMs: 5, attributes: {} },
    { dropped: 3 },
    { end: true },
  ];
  for (const line of lines) expect(parseLine(JSON.stringify(line))).toEqual(line);
});

test("a malformed line is rejected", () => {
  const wrong = [
    "",
    "null",
    "[]",
    "{",
    '{"end":1}',
    ...[
      { at: Number.MAX_VALUE },
      { attributes: null },
      { checks: [1] },
      { checks: [["r"]] },
      { cost: "1" },
      { parts: [{}] },
      { entry: 1 },
      { allowed: true },
      { rules: -1 },
      { refund: 1 },
    ].map((change) => JSON.stringify({ ...decision, ...change })),
  ];
  for (const text of wrong) expect(parseLine(text), text).toBeUndefined();
});
