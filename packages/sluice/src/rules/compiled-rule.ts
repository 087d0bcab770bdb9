/**
 * A rule made ready for requests: its conditions, its key's slots, and a plan for every set of numbers that a request can
 * meet (each variant and the candidate, under each override and under none), so that no request compiles anything.
 */
import type { CheckPlan } from "../check.js";
import type { CheckMode } from "../decision.js";
import { counterKeyEnd, escapeKeyPart, type Stored } from "../keys.js";
import type { AttributeReader } from "./attribute-reader.js";
import { compilePolicy } from "./compile-policy.js";
import { type Condition, compileCondition, presence } from "./condition.js";
import { effectiveNumbers, type NumberLayer } from "./effective-numbers.js";
import type { RuleKeys } from "./key-memo.js";
import { MatchIndex } from "./match-index.js";
import type { Match, Override, Rule } from "./rule.js";
import { VariantChoice } from "./variant-choice.js";

export interface CompiledRule {
  readonly id: string;
  /** What must hold: the match, and the presence of every key attribute. */
  readonly conditions: readonly Condition[];
  /** The key's attribute names, ready for `spellEscaped`. */
  readonly escapedKey: readonly string[];
  readonly keySlots: readonly number[];
  /** A list of one; empty without colocation. */
  readonly escapedColocate: readonly string[];
  readonly colocateSlot: number;
  readonly cost: number;
  /** Where the cost comes from a request's attribute; else undefined. */
  readonly costAttribute: string | undefined;
  readonly costSlot: number;
  readonly overrides: MatchIndex | undefined;
  readonly variants: VariantChoice | undefined;
  /** For rules that count by one attribute and need nothing but its value for the key; else undefined. */
  readonly keys: RuleKeys | undefined;
  /** By override (0: none, 1: the first ...), then by variant. */
  readonly plans: readonly (readonly CheckPlan[])[];
  /** By override; empty without a candidate. */
  readonly candidatePlans: readonly CheckPlan[];
}

const NO_SLOT = -1;

export function compileRule(rule: Rule, reader: AttributeReader): CompiledRule {
  const costAttribute = typeof rule.cost === "object" ? rule.cost.attribute : undefined;
  const { variants, overrides = [] } = rule;
  return {
    id: rule.id,
    conditions: [
      ...compileMatch(rule.match ?? {}, reader),
      ...rule.key.map((attribute) => presence(attribute, reader.slotOf(attribute))),
    ],
    escapedKey: rule.key.map(escapeKeyPart),
    keySlots: rule.key.map((attribute) => reader.slotOf(attribute)),
    escapedColocate: rule.colocate === undefined ? [] : [escapeKeyPart(rule.colocate)],
    colocateSlot: rule.colocate === undefined ? NO_SLOT : reader.slotOf(rule.colocate),
    cost: typeof rule.cost === "number" ? rule.cost : 1,
    costAttribute,
    costSlot: costAttribute === undefined ? NO_SLOT : reader.slotOf(costAttribute),
    overrides:
      overrides.length === 0 ? undefined : new MatchIndex(overrides.map(({ match }) => compileMatch(match, reader))),
    variants:
      variants === undefined
        ? undefined
        : new VariantChoice(
            rule.id,
            variants.map(({ weight }) => weight),
          ),
    keys:
      rule.key.length === 1 && !variants && !rule.candidate && rule.colocate === undefined
        ? { byValue: new Map(), generation: 0 }
        : undefined,
    ...compilePlans(rule),
  };
}

/** Every form in which the rule's counters can be stored: what a reset has to forget. */
export function storedForms(rule: Rule): { stored: Stored; candidate: boolean }[] {
  // Of all that an override may change, only the storage changes the form.
  const overrides: readonly NumberLayer[] = [
    {},
    ...(rule.overrides ?? []).filter(({ storage }) => storage !== undefined),
  ];
  const formsOver = (layers: readonly NumberLayer[], candidate: boolean): { stored: Stored; candidate: boolean }[] => {
    const forms = new Set<Stored>();
    for (const layer of layers) {
      for (const override of overrides) forms.add(compilePolicy(effectiveNumbers([rule, layer, override])).stored);
    }
    return Array.from(forms, (stored) => ({ stored, candidate }));
  };
  return [
    ...formsOver(rule.variants ?? [{}], false),
    ...formsOver(rule.candidate === undefined ? [] : [rule.candidate], true),
  ];
}

function compileMatch(match: Match, reader: AttributeReader): Condition[] {
  return Object.keys(match).map((attribute) =>
    compileCondition(attribute, reader.slotOf(attribute), match[attribute]!),
  );
}

function compilePlans(rule: Rule): Pick<CompiledRule, "plans" | "candidatePlans"> {
  const mode = rule.mode === "shadow" ? "shadow" : "enforce";
  const variants: readonly (NumberLayer & { name?: string })[] = rule.variants ?? [{}];
  const overrides: readonly (Override | undefined)[] = [undefined, ...(rule.overrides ?? [])];
  const planOf = (layer: NumberLayer, override: Override | undefined, mode: CheckMode, variant?: string): CheckPlan => {
    const policy = compilePolicy(effectiveNumbers(override === undefined ? [rule, layer] : [rule, layer, override]));
    return {
      rule: rule.id,
      mode,
      variant,
      policy,
      keyEnd: counterKeyEnd({ rule: rule.id, stored: policy.stored, candidate: mode === "candidate" }),
      onStoreFailure: rule.onStoreFailure ?? "allow",
    };
  };
  const { candidate } = rule;
  return {
    plans: overrides.map((override) => variants.map((variant) => planOf(variant, override, mode, variant.name))),
    candidatePlans:
      candidate === undefined ? [] : overrides.map((override) => planOf(candidate, override, "candidate")),
  };
}
