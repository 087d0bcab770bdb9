import type { Rule } from "sluice";
import { expect, test } from "vitest";
import type { CheckLine, RecordingLine } from "../recording/recording-lines.js";
import { Verifier } from "./verify.js";

const START_MS = Date.UTC(2026, 0, 1);
const rule = (limit: number): Rule => ({ id: "r", key: [], algorithm: "token-bucket", limit, window: "40ms" });
const head = { sluice: "recording", version: 1, instance: "i", segment: 1, at: START_MS, store: "redis" } as const;

/** A Redis that was empty, and two versions of a rule: the second refills at a sixth of the rate. */
function verified(decisions: readonly (readonly [afterMs: number, rules: 1 | 2, found: CheckLine])[]) {
  const verifier = new Verifier();
  const lines: RecordingLine[] = [
    { ...head, fresh: true, hashed: [] },
    { rules: 1, count: 1 },
    { rule: rule(20) },
    { rules: 2, count: 1 },
    { rule: rule(3) },
    ...decisions.map(([afterMs, rules, found], i) => ({
      ...{ at: START_MS + afterMs, us: 7, attributes: {}, entry: `e${i}`, rules, checks: [found] },
      allowed: found[2],
    })),
  ];
  for (const line of lines) verifier.add("i", line);
  const { differences, otherNumbers, uncertain } = verifier.end();
  return { differences, otherNumbers, uncertain };
}

const first = [0, 1, ["r", "enforce", 1, 19, 0, 2]] as const;

test("a counter that ended while a script of Redis started may still have counted: that is uncertain, and so is what follows from it", () => {
  // Ended at 2 ms. A token was left under the new numbers, less 3 ms of refill.
  const late = [3, 2, ["r", "enforce", 1, 1, 0, 24]] as const;
  const next = [4, 2, ["r", "enforce", 1, 0, 0, 36]] as const;
  expect(verified([first, late, next])).toEqual({ differences: 0, otherNumbers: 0, uncertain: 2 });
  const fresh = [3, 2, ["r", "enforce", 1, 2, 0, 14]] as const;
  expect(verified([first, fresh])).toEqual({ differences: 0, otherNumbers: 0, uncertain: 0 });
});

test("a counter that ended long ago must not count, nor one that has not ended count for less", () => {
  const late = [103, 2, ["r", "enforce", 1, 1, 0, 24]] as const;
  expect(verified([first, late])).toEqual({ differences: 0, otherNumbers: 1, uncertain: 0 });
  const early = [1, 2, ["r", "enforce", 1, 2, 0, 14]] as const;
  expect(verified([first, early])).toEqual({ differences: 0, otherNumbers: 1, uncertain: 0 });
});
