import type { Rule } from "sluice";
import { expect, test } from "vitest";
import type { CheckLine, RecordingLine } from "../recording/recording-lines.js";
import { Verifier } from "./verify.js";

const AT_MS = Date.UTC(2026, 10, 17);
const head = {
  sluice: "recording",
  version: 1,
  instance: "i",
  segment: 1,
  at: AT_MS,
  fresh: true,
  hashed: [],
} as const;

function verified(lines: readonly RecordingLine[]) {
  const verifier = new Verifier();
  for (const line of lines) verifier.add("i", line);
  const { decisions, differences, otherNumbers, uncertain } = verifier.end();
  return { decisions, differences, otherNumbers, uncertain };
}

/** A charge of 1, a reset, a charge of 3, all within one millisecond; a refund of the first; then a peek at cost 1. */
function resetWithin(store: "redis" | "memory", rule: Rule, last: CheckLine): RecordingLine[] {
  const attributes = { user: "u" };
  const check = (us: number, entry: string, cost: number, found: CheckLine): RecordingLine => ({
    at: AT_MS,
    us,
    attributes,
    entry,
    cost,
    rules: 1,
    allowed: 1,
    checks: [found],
  });
  return [
    { ...head, store },
    { rules: 1, count: 1 },
    { rule },
    check(92, "first", 1, [rule.id, "enforce", 1, 9, 0, 60_000]),
    { at: AT_MS, us: 474, rules: 1, reset: rule.id, attributes },
    check(987, "second", 3, [rule.id, "enforce", 1, 7, 0, 60_000]),
    { at: AT_MS + 64, us: 875, refund: "first" },
    { ...(check(20, "third", 1, last) as object), at: AT_MS + 65 } as RecordingLine,
  ];
}

const alike = { decisions: 3, differences: 0, otherNumbers: 0, uncertain: 0 };
// Start of a minute, so that the window ends 60 s later.
const fixed: Rule = { id: "r", key: ["user"], algorithm: "fixed-window", limit: 10, window: "1m" };
const rolling: Rule = { id: "r", key: ["user"], algorithm: "rolling-window", limit: 10, window: "1m" };

test("in Redis, refunding a charge made before a reset does not affect a charge after it in the same millisecond, nor in the replay", () => {
  expect(verified(resetWithin("redis", fixed, ["r", "enforce", 1, 6, 0, 59_935]))).toEqual(alike);
  expect(verified(resetWithin("redis", fixed, ["r", "enforce", 1, 7, 0, 59_935]))).toEqual({
    ...alike,
    otherNumbers: 1,
  });
});

test("a sorted set identifies charges by name, and the memory store tracks resets: neither gives anything back", () => {
  const set: Rule = { ...rolling, storage: "sorted-set" };
  expect(verified(resetWithin("redis", set, ["r", "enforce", 1, 6, 0, 60_000]))).toEqual(alike);
  expect(verified(resetWithin("memory", fixed, ["r", "enforce", 1, 6, 0, 59_935]))).toEqual(alike);
});

test("a counter that is reset, charged and refunded within a millisecond keeps the clock set ahead by the reset, as does the replay", () => {
  const attributes = { user: "u" };
  const check = (atMs: number, us: number, entry: string, resetAfterMs: number): RecordingLine => ({
    ...{ at: atMs, us, attributes, entry, cost: 1, rules: 1, allowed: 1 },
    checks: [["r", "enforce", 1, entry === "last" ? 8 : 9, 0, resetAfterMs]],
  });
  const lines: RecordingLine[] = [
    { ...head, store: "redis" },
    { rules: 1, count: 1 },
    { rule: rolling },
    check(AT_MS, 92, "first", 60_000),
    { at: AT_MS, us: 474, rules: 1, reset: "r", attributes },
    check(AT_MS, 600, "second", 60_001),
    { at: AT_MS, us: 700, rules: 1, giveBack: [{ attributes, cost: 1 }] },
    check(AT_MS, 900, "third", 60_001),
    check(AT_MS + 65, 20, "last", 60_000),
  ];
  expect(verified(lines)).toEqual({ ...alike, decisions: 4 });
});

/** Decisions on an initially empty Redis, under two versions of a rule: the second refills at a sixth of the rate. */
function editedBucket(decisions: readonly (readonly [afterMs: number, rules: 1 | 2, found: CheckLine])[]) {
  const rule = (limit: number): Rule => ({ id: "r", key: [], algorithm: "token-bucket", limit, window: "40ms" });
  const lines: RecordingLine[] = [
    { ...head, store: "redis" },
    { rules: 1, count: 1 },
    { rule: rule(20) },
    { rules: 2, count: 1 },
    { rule: rule(3) },
    ...decisions.map(([afterMs, rules, found], i) => ({
      ...{ at: AT_MS + afterMs, us: 7, attributes: {}, entry: `e${i}`, rules, checks: [found] },
      allowed: found[2],
    })),
  ];
  return lines;
}

const first = [0, 1, ["r", "enforce", 1, 19, 0, 2]] as const;

test("a counter that ended while a Redis script started may still have counted: the decision is uncertain, and so are its consequences", () => {
  // Ended at 2 ms. Under the new numbers a token was left, minus 3 ms of refill.
  const late = [3, 2, ["r", "enforce", 1, 1, 0, 24]] as const;
  const next = [4, 2, ["r", "enforce", 1, 0, 0, 36]] as const;
  expect(verified(editedBucket([first, late, next]))).toEqual({ ...alike, uncertain: 2 });
  const fresh = [3, 2, ["r", "enforce", 1, 2, 0, 14]] as const;
  expect(verified(editedBucket([first, fresh]))).toEqual({ ...alike, decisions: 2 });
});

test("a counter that ended long ago must not count, and one that has not ended must count in full", () => {
  const late = [103, 2, ["r", "enforce", 1, 1, 0, 24]] as const;
  expect(verified(editedBucket([first, late]))).toEqual({ ...alike, decisions: 2, otherNumbers: 1 });
  const early = [1, 2, ["r", "enforce", 1, 2, 0, 14]] as const;
  expect(verified(editedBucket([first, early]))).toEqual({ ...alike, decisions: 2, otherNumbers: 1 });
});
