import { expect, test } from "vitest";
import { runAtOnce, Stride } from "../time-slices.js";
import { AttributeReader } from "./attribute-reader.js";
import { type CompiledRule, compilingRule, storedForms } from "./compiled-rule.js";
import type { CountingRule } from "./rule.js";

const rule = (more: object = {}): CountingRule =>
  ({ id: "r", key: ["user"], algorithm: "rolling-window", limit: 10, window: "1m", ...more }) as CountingRule;

function compiled(of: CountingRule): { compiled: CompiledRule; reader: AttributeReader } {
  const reader = new AttributeReader();
  return { compiled: runAtOnce(compilingRule(of, { reader, stride: new Stride() })), reader };
}

test("there is a plan for each variant and the candidate, under each override and under none", () => {
  const { plans, candidatePlans } = compiled(
    rule({
      variants: [
        { name: "a", weight: 1 },
        { name: "b", weight: 1, limit: 20 },
      ],
      candidate: { limit: 5 },
      overrides: [{ match: { user: "vip" }, limit: 99 }],
    }),
  ).compiled;
  const limits = plans.map((byVariant) => byVariant.map(({ policy, variant }) => [variant, policy.limit]));
  expect(limits).toEqual([
    [
      ["a", 10],
      ["b", 20],
    ],
    [
      ["a", 99],
      ["b", 99],
    ],
  ]);
  expect(candidatePlans.map(({ mode, policy }) => [mode, policy.limit])).toEqual([
    ["candidate", 5],
    ["candidate", 99],
  ]);
});

test("the match and the presence of every key attribute must hold", () => {
  const { conditions, keySlots } = compiled(rule({ key: ["user", "ip"], match: { tier: "free" } })).compiled;
  expect(conditions.map(({ attribute, anyValue }) => [attribute, anyValue])).toEqual([
    ["tier", false],
    ["user", true],
    ["ip", true],
  ]);
  expect(keySlots).toEqual([conditions[1]!.slot, conditions[2]!.slot]);
});

test("plans carry the mode and the failure policy, by default local", () => {
  const plan = compiled(rule({ mode: "shadow" })).compiled.plans[0]![0]!;
  expect([plan.mode, plan.onStoreFailure]).toEqual(["shadow", "local"]);
});

test("a cost from an attribute has a slot; keys are cached only if a single value forms them", () => {
  const { compiled: priced, reader } = compiled(rule({ cost: { attribute: "tokens" } }));
  expect([priced.costAttribute, priced.costSlot]).toEqual(["tokens", reader.slotOf("tokens")]);
  expect(priced.keys).toBeDefined();
  for (const more of [{ key: ["a", "b"] }, { colocate: "tenant" }, { candidate: { limit: 1 } }]) {
    expect(compiled(rule(more)).compiled.keys).toBeUndefined();
  }
});

test("a reset must forget every form that variants, candidate and overrides can store", () => {
  const forms = storedForms(
    rule({
      storage: "packed",
      candidate: { algorithm: "gcra" },
      overrides: [{ match: { user: "x" }, storage: "sorted-set" }],
    }),
  );
  expect(forms.map(({ stored, candidate }) => `${stored}${candidate ? "!" : ""}`)).toEqual([
    "rolling-window-packed",
    "rolling-window",
    "gcra!",
  ]);
});
