import { expect, test } from "vitest";
import { DEFAULT_CLASSES, sheddingPlan } from "./shedding-plan.js";

const rule = { id: "s", key: [], algorithm: "load-shedding", signal: "inflight", limit: 4 } as const;

test("a rule without classes has one, shed at a utilisation of 1", () => {
  const plan = sheddingPlan(rule);
  expect([plan.classNames, plan.thresholds, plan.defaultClass]).toEqual([["all"], [1], 0]);
  expect(plan.mode).toBe("enforce");
});

test("a rule with a class attribute has the default classes, or its own", () => {
  const named = sheddingPlan({ ...rule, class: { attribute: "c", default: "normal" } });
  expect(named.classNames).toEqual(Object.keys(DEFAULT_CLASSES));
  expect(named.classNames[named.defaultClass]).toBe("normal");
  const own = sheddingPlan({ ...rule, class: { attribute: "c", default: "b" }, classes: { a: 0.5, b: 2 } });
  expect([own.thresholds, own.defaultClass]).toEqual([[0.5, 2], 1]);
});

test("plans with the same measurements have the same signature, whatever their match and mode", () => {
  const { signature } = sheddingPlan(rule);
  expect(sheddingPlan({ ...rule, mode: "shadow", match: { path: "/x" } }).signature).toBe(signature);
  expect(sheddingPlan({ ...rule, limit: 5 }).signature).not.toBe(signature);
  expect(sheddingPlan({ ...rule, fairBy: "tenant" }).signature).not.toBe(signature);
});
