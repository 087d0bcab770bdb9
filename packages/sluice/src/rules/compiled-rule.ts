/**
 * A rule prepared for requests: its conditions, the slots of its key, and a plan for every set of numbers that can apply to a request (each
 * variant and the candidate, under each override and without one), so that no request compiles anything.
 */
import type { CheckPlan } from "../check.js";
import type { CheckMode } from "../decision.js";
import { blockKeyEnd, counterKeyEnd, escapeKeyPart, type Stored } from "../keys.js";
import type { Sliced, Stride } from "../time-slices.js";
import type { AttributeReader } from "./attribute-reader.js";
import { estimateUnder } from "./compile-estimate.js";
import { blockLengths, compilePolicy, maxWaitMsOf, prefetchMsOf, regionTermOf } from "./compile-policy.js";
import { type Condition, compileCondition, presence } from "./condition.js";
import { effectiveNumbers, type NumberLayer } from "./effective-numbers.js";
import { noKeys, type RuleKeys } from "./key-memo.js";
import { MatchIndex } from "./match-index.js";
import { type CountingRule, DEFAULT_FAILURE_POLICY, type Match, type Override } from "./rule.js";
import { VariantChoice } from "./variant-choice.js";

export interface CompiledRule {
  readonly id: string;
  /** The conditions: the match, and the presence of every key attribute. */
  readonly conditions: readonly Condition[];
  /** The key's attribute names, ready for `spellEscaped`. */
  readonly escapedKey: readonly string[];
  readonly keySlots: readonly number[];
  /** A list with one item; empty without colocation. */
  readonly escapedColocate: readonly string[];
  readonly colocateSlot: number;
  readonly cost: number;
  /** Set if the cost comes from an attribute of the request. */
  readonly costAttribute: string | undefined;
  readonly costSlot: number;
  /** The slot of the request's own upper bound of its cost, if the rule estimates and uses one. */
  readonly saidSlot: number;
  readonly estimates: boolean;
  readonly saidAttribute: string | undefined;
  readonly overrides: MatchIndex | undefined;
  readonly variants: VariantChoice | undefined;
  /** For rules that count by one attribute and need only its value for the key; otherwise undefined. */
  readonly keys: RuleKeys | undefined;
  /** By override (0: none, 1: the first ...), then by variant. Plans of a rule with `adapt` are replaced, never mutated. */
  readonly plans: readonly CheckPlan[][];
  /** The only attribute that the rule uses, if it needs nothing else (`sole-rule.ts`). */
  readonly soleAttribute: string | undefined;
  /** By override; empty without a candidate. */
  readonly candidatePlans: readonly CheckPlan[];
}

const NO_SLOT = -1;

/** State shared while the rules of one book are compiled. */
interface Compiler {
  readonly reader: AttributeReader;
  readonly stride: Stride;
}

export function* compilingRule(rule: CountingRule, compiler: Compiler): Sliced<CompiledRule> {
  const { reader, stride } = compiler;
  const costAttribute = typeof rule.cost === "object" ? rule.cost.attribute : undefined;
  const { variants, overrides = [] } = rule;
  const [match] = yield* compilingMatches([rule], compiler);
  const overrideMatches = yield* compilingMatches(overrides, compiler);
  const plans = yield* compilingPlans(rule, stride);
  return {
    id: rule.id,
    conditions: [...match!, ...rule.key.map((attribute) => presence(attribute, reader.slotOf(attribute)))],
    escapedKey: rule.key.map(escapeKeyPart),
    keySlots: rule.key.map((attribute) => reader.slotOf(attribute)),
    escapedColocate: rule.colocate === undefined ? [] : [escapeKeyPart(rule.colocate)],
    colocateSlot: rule.colocate === undefined ? NO_SLOT : reader.slotOf(rule.colocate),
    cost: typeof rule.cost === "number" ? rule.cost : 1,
    costAttribute,
    costSlot: costAttribute === undefined ? NO_SLOT : reader.slotOf(costAttribute),
    estimates: rule.estimate !== undefined,
    saidAttribute: rule.estimate?.attribute,
    saidSlot: rule.estimate?.attribute === undefined ? NO_SLOT : reader.slotOf(rule.estimate.attribute),
    overrides: overrides.length === 0 ? undefined : yield* MatchIndex.filing(overrideMatches, stride),
    variants:
      variants === undefined
        ? undefined
        : new VariantChoice(
            rule.id,
            variants.map(({ weight }) => weight),
          ),
    keys: rule.key.length === 1 && !variants && !rule.candidate && rule.colocate === undefined ? noKeys() : undefined,
    ...plans,
    soleAttribute: soleAttributeOf(rule, plans.plans[0]![0]!),
  };
}

function soleAttributeOf(rule: CountingRule, { policy, mode, block, maxWaitMs }: CheckPlan): string | undefined {
  const { match, variants, candidate, overrides, colocate, cost, estimate, key } = rule;
  const hasMore = [match, variants, candidate, overrides, colocate, estimate, block].some((part) => part !== undefined);
  // These have a name or a term for each entry.
  const isNamed = policy.stored === "concurrency" || policy.stored === "rolling-window" || policy.stored === "pool";
  if (hasMore || isNamed || mode !== "enforce" || typeof cost === "object" || maxWaitMs > 0 || key.length !== 1)
    return undefined;
  return key[0];
}

/** Every form in which the rule's counters may be stored: what a reset must forget. */
export function storedForms(rule: CountingRule): { stored: Stored; candidate: boolean }[] {
  // Of everything that an override may change, only the storage and a limit of 0 change the form.
  const overrides: readonly NumberLayer[] = [
    {},
    ...(rule.overrides ?? []).filter(({ storage }) => storage !== undefined),
    ...(rule.overrides?.some(({ limit }) => limit === 0) ? [{ limit: 0 }] : []),
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

export function* compilingMatches(
  matching: readonly { readonly match?: Match }[],
  { reader, stride }: Compiler,
): Sliced<Condition[][]> {
  const compiled: Condition[][] = [];
  for (const { match = {} } of matching) {
    const conditions: Condition[] = [];
    for (const attribute of Object.keys(match)) {
      const condition = compileCondition(attribute, match[attribute]!, reader);
      conditions.push(condition);
      stride.add(condition.wanted.length);
      if (stride.isOver()) yield;
    }
    compiled.push(conditions);
  }
  return compiled;
}

function* compilingPlans(rule: CountingRule, stride: Stride): Sliced<Pick<CompiledRule, "plans" | "candidatePlans">> {
  const { candidate, variants, overrides = [] } = rule;
  const mode = rule.mode === "shadow" ? "shadow" : "enforce";
  const live: readonly Planner[] =
    variants === undefined
      ? [plannerOf(rule, { layer: {}, mode })]
      : variants.map((layer) => plannerOf(rule, { layer, mode, variant: layer.name }));
  const second = candidate && plannerOf(rule, { layer: candidate, mode: "candidate" });
  const plans: CheckPlan[][] = [];
  const candidatePlans: CheckPlan[] = [];
  for (let i = -1; i < overrides.length; i++) {
    const override = i === -1 ? undefined : overrides[i];
    plans.push(live.map((planUnder) => planUnder(override)));
    if (second !== undefined) candidatePlans.push(second(override));
    stride.add(live.length);
    if (stride.isOver()) yield;
  }
  return { plans, candidatePlans };
}

type Planner = (override: Override | undefined) => CheckPlan;

function plannerOf(rule: CountingRule, over: { layer: NumberLayer; mode: CheckMode; variant?: string }): Planner {
  const { layer, mode, variant } = over;
  // The plans of 100 000 overrides share one string: only an override of the storage changes it.
  let keyedBy: Stored | undefined;
  let keyEnd = "";
  const blockEnd = blockKeyEnd({ rule: rule.id, candidate: mode === "candidate" });
  return (override) => {
    const numbers = effectiveNumbers(override === undefined ? [rule, layer] : [rule, layer, override]);
    const policy = compilePolicy(numbers);
    const lengthsMs = blockLengths(numbers);
    if (policy.stored !== keyedBy) {
      keyedBy = policy.stored;
      keyEnd = counterKeyEnd({ rule: rule.id, stored: keyedBy, candidate: mode === "candidate" });
    }
    const plan: CheckPlan = {
      rule: rule.id,
      mode,
      variant,
      policy,
      keyEnd,
      onStoreFailure: rule.onStoreFailure ?? DEFAULT_FAILURE_POLICY,
      prefetchMs: prefetchMsOf(numbers),
      regionTermMs: rule.scope === "global" ? regionTermOf(policy) : 0,
      ...(rule.unit !== undefined && { unit: rule.unit }),
      maxWaitMs: maxWaitMsOf(numbers),
    };
    const blocking = lengthsMs === undefined ? plan : { ...plan, block: { keyEnd: blockEnd, lengthsMs } };
    return rule.estimate === undefined ? blocking : { ...blocking, estimate: estimateUnder(rule, override) };
  };
}
