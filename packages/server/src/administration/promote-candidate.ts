/**
 * Promotes a rule's candidate to its live numbers. Combines the layers as docs/rules.md defines for a candidate: its fields win, `window`
 * and `refill` replace each other, and fields unknown to the resulting algorithm are dropped. Pure; the caller validates the result.
 */
import { type AlgorithmName, type Rule, ruleJsonSchema, SluiceError } from "sluice";
import { ServiceError } from "../errors.js";

type Fields = Record<string, unknown>;

export function promoteCandidate(rules: readonly Rule[], id: string): Rule[] {
  const rule = rules.find((one) => one.id === id);
  if (rule === undefined) throw unknownRule(id);
  if (rule.candidate === undefined) throw new ServiceError("no-candidate", `the rule ${id} has no candidate`);
  return rules.map((one) => (one === rule ? promoted(rule) : one));
}

export function unknownRule(id: string): SluiceError {
  return new SluiceError("unknown-rule", `rule: expected the id of a rule in force, got ${JSON.stringify(id)}`);
}

function promoted({ candidate = {}, ...rule }: Rule): Rule {
  const algorithm = candidate.algorithm ?? rule.algorithm;
  const below: Fields = { ...rule };
  if (candidate.window !== undefined) delete below.refill;
  if (candidate.refill !== undefined) delete below.window;
  if (candidate.align === "epoch") delete below.timezone;
  const numbers: Fields = { ...below, ...candidate, algorithm };
  for (const name of fieldsUnknownTo(algorithm)) delete numbers[name];

  // An override may have fields that only the old algorithm knew; a variant may still need them.
  const algorithms = [algorithm, ...(rule.variants ?? []).map((variant) => variant.algorithm ?? algorithm)];
  const unknownToAll = fieldsUnknownTo(algorithm).filter((name) =>
    algorithms.every((one) => fieldsUnknownTo(one).includes(name)),
  );
  if (rule.overrides !== undefined) {
    numbers.overrides = rule.overrides.map((override) => {
      const kept: Fields = { ...override };
      for (const name of unknownToAll) delete kept[name];
      return kept;
    });
  }
  return numbers as unknown as Rule;
}

/** From the rule schema, which lists for each algorithm the fields it refuses. */
function fieldsUnknownTo(algorithm: AlgorithmName): string[] {
  const { allOf } = ruleJsonSchema() as {
    allOf: { if: { properties: { algorithm: { const: string } } }; then: { properties: Record<string, unknown> } }[];
  };
  const refusal = allOf.find((one) => one.if.properties.algorithm.const === algorithm);
  // Schemas other than `false` narrow a field rather than refuse it.
  return Object.entries(refusal?.then.properties ?? {}).flatMap(([name, schema]) => (schema === false ? [name] : []));
}
