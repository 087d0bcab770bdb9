import { expect, test } from "vitest";
import { type KnownKeys, newHeavyKeys } from "./heavy-key.js";

const HOUR_MS = 3_600_000;
const key = (user: string, count: number, refused = 0) =>
  ({ rule: "a", attributes: { user }, count, refused, utilisation: 0, peak: 0 }) as never;

function look(given: {
  keys: readonly unknown[];
  maxError?: number;
  checks?: number;
  known?: KnownKeys;
  nowMs?: number;
  knownMinutes?: number;
}) {
  const { keys, maxError = 0, checks = 10_000, known = new Map(), nowMs = 100 * HOUR_MS, knownMinutes = 600 } = given;
  return newHeavyKeys({ top: { maxError, keys: keys as never }, checksOf: () => checks, known, knownMinutes, nowMs });
}

test("a new key with a fifth of a rule's checks is heavy, not counting the sketch's error", () => {
  expect(look({ keys: [key("u", 2_000)] }).findings).toMatchObject([{ level: "fire", value: 2_000, rule: "a" }]);
  expect(look({ keys: [key("u", 2_000)], maxError: 1 }).findings).toEqual([]);
  expect(look({ keys: [key("u", 999)], checks: 999 }).findings).toEqual([]);
});

test("an alert lasts for an hour; at half the share it only holds", () => {
  const first = look({ keys: [key("u", 2_000)], nowMs: 0 });
  const again = look({ keys: [key("u", 1_000)], known: first.known, nowMs: HOUR_MS - 1 });
  expect(again.findings).toMatchObject([{ level: "hold" }]);
  expect(look({ keys: [key("u", 5_000)], known: first.known, nowMs: HOUR_MS }).findings).toEqual([]);
});

test("keys that are heavy during the warm-up never alert", () => {
  const learnt = look({ keys: [key("u", 5_000)], knownMinutes: 59, nowMs: HOUR_MS });
  expect(learnt.findings).toEqual([]);
  expect(look({ keys: [key("u", 5_000)], known: learnt.known, nowMs: HOUR_MS + 1 }).findings).toEqual([]);
});

test("a key is remembered for eight days after it was last heavy, by its digest alone", () => {
  const { known } = look({ keys: [key("secret", 2_000)], nowMs: 0 });
  expect(JSON.stringify([...known])).not.toContain("secret");
  const day = 24 * HOUR_MS;
  expect(look({ keys: [], known, nowMs: 8 * day - 1 }).known.size).toBe(1);
  expect(look({ keys: [], known, nowMs: 8 * day }).known.size).toBe(0);
});

test("at most 1000 keys are remembered, the least recently heavy ones are evicted", () => {
  const keys = Array.from({ length: 1_001 }, (_, i) => key(`u${i}`, 2_000));
  const { known } = look({ keys });
  expect(known.size).toBe(1_000);
  const { findings } = look({ keys: [keys[0], keys[1]], known, nowMs: 102 * HOUR_MS });
  expect(findings.map(({ summary }) => /user=(\w+)/.exec(summary)![1])).toEqual(["u0"]);
});

test("a rule that counts everything together has a single key, which never alerts", () => {
  expect(look({ keys: [{ rule: "a", attributes: {}, count: 10_000, refused: 0 }] }).findings).toEqual([]);
});
