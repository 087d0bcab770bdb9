import { expect, test } from "vitest";
import { KeyMemo, noKeys, type RuleKeys } from "./key-memo.js";

const GENERATION = 65_536;
const keyOf = (memo: KeyMemo, keys: RuleKeys, value: string): string => memo.keyOf(keys, ["user"], value, "}:r:b");
const remembered = ({ young, old }: RuleKeys): number => young.size + old.size;

test("a key is the one that keys.ts builds, and another end gives another key", () => {
  const memo = new KeyMemo();
  const keys = noKeys();
  expect(keyOf(memo, keys, "42")).toBe("{user=42}:r:b");
  expect(memo.keyOf(keys, ["user"], "42", "}:r:z")).toBe("{user=42}:r:z");
  expect(keyOf(memo, keys, "42")).toBe("{user=42}:r:b");
});

test("a busy key survives any number of others; an unused one is dropped", () => {
  const memo = new KeyMemo();
  const keys = noKeys();
  keyOf(memo, keys, "idle");
  for (let i = 0; i < 3 * GENERATION; i++) {
    keyOf(memo, keys, "busy");
    keyOf(memo, keys, `once-${i}`);
  }
  const has = (value: string): boolean => keys.young.has(value) || keys.old.has(value);
  expect({ busy: has("busy"), idle: has("idle") }).toEqual({ busy: true, idle: false });
});

test("all rules together cache at most two generations, including rules that are no longer used", () => {
  const memo = new KeyMemo();
  const rules = Array.from({ length: 4 }, noKeys);
  for (const keys of rules) for (let i = 0; i < 2 * GENERATION; i++) keyOf(memo, keys, `value-${i}`);
  const all = rules.reduce((sum, keys) => sum + remembered(keys), 0);
  expect(all).toBeLessThanOrEqual(2 * GENERATION);
  expect(remembered(rules[0]!)).toBe(0);
});

test("a value longer than 128 characters is not cached", () => {
  const memo = new KeyMemo();
  const keys = noKeys();
  keyOf(memo, keys, "x".repeat(129));
  expect(remembered(keys)).toBe(0);
});
