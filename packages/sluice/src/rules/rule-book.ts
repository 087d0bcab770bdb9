/**
 * The rule book: rules compiled for a version, immutable except for adaptive limits. Turns a request's attributes into the checks it must
 * pass. In: validated rules. Out: checks, in the book's order, a candidate's right after its live one. Pure: no clock, no Redis; so a rule
 * can be tried in a unit test or in the dashboard.
 */
import { isSamePolicy, type Policy } from "../algorithms/policy.js";
import type { Check, CheckPlan } from "../check.js";
import type { CheckMode } from "../decision.js";
import { SluiceError } from "../errors.js";
import {
  blockKeyEnd,
  colocatedKey,
  counterKey,
  counterKeyEnd,
  readCounterKey,
  spellEscaped,
  spelledIn,
  spellValues,
  turnsKey,
} from "../keys.js";
import { runAtOnce, type Sliced, Stride } from "../time-slices.js";
import { AttributeReader, checkCost, costIn, invalid, readAttribute } from "./attribute-reader.js";
import { type CompiledRule, compilingRule, storedForms } from "./compiled-rule.js";
import { explainFailure, holds } from "./condition.js";
import { describeValue } from "./describe-value.js";
import type { NumberLayer } from "./effective-numbers.js";
import { EntryList } from "./entry-list.js";
import { KeyMemo } from "./key-memo.js";
import { MatchIndex } from "./match-index.js";
import { type Attributes, type CountingRule, isCounting, isShedding, type Override, type Rule } from "./rule.js";
import { SheddingBook } from "./shedding-book.js";
import { SoleRule } from "./sole-rule.js";

/** The outcome of one rule for a request, and why. */
export interface Considered {
  readonly rule: string;
  readonly matched: boolean;
  /** A sentence for humans. */
  readonly why: string;
  /** The live counter's key, from `keys.ts`. */
  readonly key?: string;
  /** The index in the rule's `overrides` of the one that applies. */
  readonly override?: number;
  readonly variant?: string;
}

/** A counter that units were held in, and the numbers that it had then. */
interface CountedUnder {
  readonly rule: string;
  readonly mode: CheckMode;
  readonly key: string;
  readonly policy: Policy;
}

/** Everything in a rule book except its version. */
export interface CompiledRules {
  readonly rules: readonly Rule[];
  readonly byId: ReadonlyMap<string, Rule>;
  readonly reader: AttributeReader;
  /** The rules that count and are not off. */
  readonly compiled: readonly CompiledRule[];
  readonly index: MatchIndex;
  /** The rules that shed load and are not off; undefined if there are none. */
  readonly shedding: SheddingBook | undefined;
}

/** `rules` must have been validated (`parseRules`). */
export function compileRuleBook(rules: readonly Rule[], version: number): RuleBook {
  return new RuleBook(runAtOnce(compilingRules(rules)), version);
}

/** `rules` must have been validated. */
export function* compilingRules(rules: readonly Rule[]): Sliced<CompiledRules> {
  const stride = new Stride();
  const reader = new AttributeReader();
  const byId = new Map<string, Rule>();
  const compiled: CompiledRule[] = [];
  for (const rule of rules) {
    byId.set(rule.id, rule);
    if (rule.mode !== "off" && isCounting(rule)) compiled.push(yield* compilingRule(rule, { reader, stride }));
    if (stride.isOver()) yield;
  }
  const entries = compiled.map(({ conditions }) => conditions);
  const index = yield* MatchIndex.filing(entries, stride);
  const sheds = rules.filter(isShedding).filter(({ mode }) => mode !== "off");
  return { rules, byId, reader, compiled, index, shedding: yield* SheddingBook.compiling(sheds, stride) };
}

/** A request is decided in one go, on Redis in one script call: more rules than this would delay everyone else's requests. */
export const MOST_RULES_APPLIED = 1_000;

/** Most rules that do not apply to list in one explanation. */
const MOST_EXPLAINED = 100;

/**
 * The steps of `checks`, for a replay that keeps its counters by client (`sluice/internal`). What was found is valid until the next `find`.
 */
export interface RuleMatcher {
  /** The rules that apply, by index. */
  readonly find: (attributes: Attributes) => EntryList;
  readonly ruleAt: (place: number) => CompiledRule;
  /** By slot, for the last request read. */
  readonly values: readonly (string | undefined)[];
  /** Writes a found rule's checks from index `at` on; returns the next free index. */
  readonly checksOf: (place: number, checks: Check[], at: number) => number;
}

export class RuleBook {
  readonly version: number;
  readonly rules: readonly Rule[];
  /** The rules that shed load, which are asked before the others; undefined if there are none. */
  readonly shedding: SheddingBook | undefined;
  /** Whether any rule in force estimates its cost. */
  readonly estimates: boolean;
  /** Present if the book consists of one rule that needs one attribute. */
  readonly sole: SoleRule | undefined;
  readonly #byId: ReadonlyMap<string, Rule>;
  readonly #reader: AttributeReader;
  readonly #compiled: readonly CompiledRule[];
  readonly #index: MatchIndex;
  readonly #found = new EntryList();
  readonly #memo = new KeyMemo();
  #compiledById: ReadonlyMap<string, CompiledRule> | undefined;
  readonly #beyondKey = new WeakMap<CompiledRule, readonly number[]>();

  constructor({ rules, byId, reader, compiled, index, shedding }: CompiledRules, version: number) {
    this.version = version;
    this.rules = rules;
    this.shedding = shedding;
    this.#byId = byId;
    this.#reader = reader;
    this.#compiled = compiled;
    this.estimates = compiled.some(({ estimates }) => estimates);
    this.sole = shedding === undefined ? SoleRule.in(compiled, version) : undefined;
    this.#index = index;
  }

  find(id: string): Rule | undefined {
    return this.#byId.get(id);
  }

  /** The plans of a rule under all its overrides and variants, without its candidate's; none for a rule that is off. */
  plansOf(id: string): CheckPlan[] {
    return this.#compiledRule(id)?.plans.flat() ?? [];
  }

  /** Replaces a rule's plans, in the order of `plansOf`. Checks made before keep theirs. */
  replacePlans(id: string, others: readonly CheckPlan[]): void {
    let next = 0;
    for (const plans of this.#compiledRule(id)?.plans ?? []) {
      for (let variant = 0; variant < plans.length; variant++) plans[variant] = others[next++]!;
    }
    // A sole rule's book has no other rule.
    this.sole?.planWith(others[0]!);
  }

  /**
   * The numbers that a rule has now for a counter, whose `policy` may be from before an edit. `policy` itself if the rule still has it, or
   * no longer counts in this form.
   */
  policyNow({ rule: id, mode, key, policy }: CountedUnder): Policy {
    const rule = this.#compiledRule(id);
    if (rule === undefined) return policy;
    const variant = rule.variants?.choose(spelledIn(key)) ?? 0;
    const policyUnder = (override: number): Policy | undefined =>
      (mode === "candidate" ? rule.candidatePlans[override] : rule.plans[override]![variant])?.policy;
    const override = this.#overrideOf(rule, key);
    const now = override === undefined ? undefined : policyUnder(override);
    if (now === undefined || now.stored !== policy.stored || isSamePolicy(now, policy)) return policy;
    const isOther = (beyond: number): boolean => isSamePolicy(policyUnder(beyond)!, policy);
    return this.#overridesBeyondKey(rule).some(isOther) ? policy : now;
  }

  /** The override that applies to a counter by its key alone, as an index of plans; undefined if the key does not show its values. */
  #overrideOf({ overrides }: CompiledRule, key: string): number | undefined {
    if (overrides === undefined) return 0;
    const { attributes } = readCounterKey(key);
    if (attributes === undefined) return undefined;
    try {
      this.#reader.read(attributes);
      return overrides.first(this.#reader) + 1;
    } catch {
      // Too complex to match: no request of this key passes any more, but what was held must be settled.
      return undefined;
    }
  }

  /** The overrides, as indices of plans, that match an attribute which the key does not contain. */
  #overridesBeyondKey(rule: CompiledRule): readonly number[] {
    let found = this.#beyondKey.get(rule);
    if (found === undefined) {
      const { key, overrides = [] } = this.#byId.get(rule.id) as CountingRule;
      const isBeyond = ({ match }: Override): boolean => Object.keys(match).some((name) => !key.includes(name));
      found = overrides.flatMap((override, i) => (isBeyond(override) ? [i + 1] : []));
      this.#beyondKey.set(rule, found);
    }
    return found;
  }

  #compiledRule(id: string): CompiledRule | undefined {
    this.#compiledById ??= new Map(this.#compiled.map((compiled) => [compiled.id, compiled]));
    return this.#compiledById.get(id);
  }

  /** The checks of a request. `cost`: the caller's cost, if any; 0 only looks. */
  checks(attributes: Attributes, cost: number | undefined): Check[] {
    if (cost !== undefined) checkCost(cost);
    const found = this.#find(attributes);
    // Allocate the right length, unless there are candidates: an array that grows by its first push reserves room for seventeen.
    const checks = new Array<Check>(found.count);
    let count = 0;
    for (let i = 0; i < found.count; i++) count = this.#place(this.#compiled[found.entries[i]!]!, cost, checks, count);
    return checks;
  }

  #find(attributes: Attributes): EntryList {
    const reader = this.#reader;
    reader.read(attributes);
    const found = this.#found;
    this.#index.find(reader, found);
    if (found.count > MOST_RULES_APPLIED) throw tooManyRules(found.count);
    return found;
  }

  static matcherOf(book: RuleBook): RuleMatcher {
    return {
      find: (attributes) => book.#find(attributes),
      ruleAt: (place) => book.#compiled[place]!,
      values: book.#reader.values,
      checksOf: (place, checks, at) => book.#place(book.#compiled[place]!, undefined, checks, at),
    };
  }

  /** How many steps matching took for the last request. For tests and benchmarks, which would otherwise depend on a stopwatch. */
  get matchingSteps(): number {
    return this.#reader.steps;
  }

  /** Every key under which the rule may have stored something for these attributes: what a reset must forget. */
  keysOf(ruleId: string, attributes: Attributes): string[] {
    const rule = this.#ruleIn(ruleId);
    // Load shedding stores nothing.
    const counters = isShedding(rule) ? [] : storedForms(rule).map((form) => counterKeyEnd({ rule: ruleId, ...form }));
    const blocks = [false, true].map((candidate) => blockKeyEnd({ rule: ruleId, candidate }));
    const turns = has(rule, "maxWait") ? counters.map(turnsKey) : [];
    return this.#keysEnding(rule, attributes, [...counters, ...turns, ...(has(rule, "blockFor") ? blocks : [])]);
  }

  /** The key of the rule's block for these attributes; rules without `blockFor` never look at one. */
  blockKeyOf(ruleId: string, attributes: Attributes): string {
    const rule = this.#ruleIn(ruleId);
    if (!has(rule, "blockFor")) {
      const remedy = "add blockFor to it, or an override with limit: 0 for the key";
      throw new SluiceError("invalid-request", `rule: expected a rule with blockFor, got ${ruleId}; ${remedy}`);
    }
    return this.#keysEnding(rule, attributes, [blockKeyEnd({ rule: ruleId, candidate: false })])[0]!;
  }

  #ruleIn(ruleId: string): Rule {
    const rule = this.#byId.get(ruleId);
    if (rule !== undefined) return rule;
    throw new SluiceError("unknown-rule", `rule: expected the id of a rule in force, got ${describeValue(ruleId)}`);
  }

  #keysEnding(rule: Rule, attributes: Attributes, ends: readonly string[]): string[] {
    const values = rule.key.map((name) => {
      const value = readAttribute(attributes, name);
      if (value === undefined) throw invalid(`attributes.${name}`, `a value, for ${rule.id} counts by it`, value);
      return value;
    });
    const spelled = spellValues(rule.key, values);
    const shared = rule.colocate === undefined ? undefined : readAttribute(attributes, rule.colocate);
    return ends.map((end) => {
      return shared === undefined
        ? counterKey(spelled, end)
        : colocatedKey(spellValues([rule.colocate!], [shared]), spelled, end);
    });
  }

  /**
   * Whether rules apply to the request, and why: all that do, and the first of the others in the book's order. A book may hold a hundred
   * thousand, and each additional one would delay other requests.
   */
  explain(attributes: Attributes): Considered[] {
    this.#reader.read(attributes);
    const found = this.#found;
    this.#index.find(this.#reader, found);
    const considered: Considered[] = [];
    let unmatched = 0;
    let next = 0;
    let nextFound = 0;
    for (let i = 0; i < this.rules.length && unmatched < MOST_EXPLAINED; i++) {
      const rule = this.rules[i]!;
      if (isShedding(rule)) {
        const shed = this.#explainShedding(rule, attributes);
        considered.push(shed);
        if (!shed.matched) unmatched++;
        continue;
      }
      const isOff = rule.mode === "off";
      const isFound = !isOff && nextFound < found.count && found.entries[nextFound] === next;
      considered.push(
        isFound ? this.#explainMatch(rule, this.#compiled[next]!) : this.#explainOther(rule, isOff ? undefined : next),
      );
      if (isFound) nextFound++;
      else unmatched++;
      if (!isOff) next++;
    }
    for (; nextFound < found.count; nextFound++) {
      const compiled = this.#compiled[found.entries[nextFound]!]!;
      considered.push(this.#explainMatch(this.#byId.get(compiled.id)!, compiled));
    }
    return considered;
  }

  #explainShedding({ id, mode }: Rule, attributes: Attributes): Considered {
    if (mode === "off") return { rule: id, matched: false, why: "mode is off" };
    const whyNot = this.shedding!.whyNot(id, attributes);
    return {
      rule: id,
      matched: whyNot === undefined,
      why: whyNot ?? "sheds load: decided in process, before counters",
    };
  }

  /** `at`: its index among the rules that are not off. */
  #explainOther(rule: Rule, at: number | undefined): Considered {
    if (at === undefined) return { rule: rule.id, matched: false, why: "mode is off" };
    const failed = this.#compiled[at]!.conditions.find((condition) => !holds(condition, this.#reader))!;
    return { rule: rule.id, matched: false, why: explainFailure(failed, this.#reader.values[failed.slot]) };
  }

  #explainMatch(rule: Rule, compiled: CompiledRule): Considered {
    const checks: Check[] = [];
    this.#place(compiled, 0, checks, 0);
    const { plan, key } = checks[0]!;
    const override = compiled.overrides?.first(this.#reader) ?? -1;
    const asked = Object.keys(rule.match ?? {});
    const scope = rule.key.length === 0 ? "" : ` that has ${rule.key.join(" and ")}`;
    const why = asked.length === 0 ? `applies to every request${scope}` : `all conditions hold: ${asked.join(", ")}`;
    return {
      rule: rule.id,
      matched: true,
      why: override === -1 ? why : `${why}; overrides[${override}] changes the numbers`,
      key,
      ...(override === -1 ? {} : { override }),
      ...(plan.variant === undefined ? {} : { variant: plan.variant }),
    };
  }

  /** Writes one matched rule's checks, for the last request read, from index `at` on; returns the next free index. */
  #place(rule: CompiledRule, cost: number | undefined, checks: Check[], at: number): number {
    if (rule.estimates && cost !== 0 && this.#reader.values[rule.costSlot] === undefined)
      return this.#placeHeld(rule, checks, at);
    const charged = cost === 0 ? 0 : this.#costUnder(rule, cost);
    return this.#placeAt(rule, charged, checks, at);
  }

  /** The cost is known only afterwards: the checks hold an estimate, which the limiter updates (`reservations/`). */
  #placeHeld(rule: CompiledRule, checks: Check[], at: number): number {
    const text = rule.saidAttribute === undefined ? undefined : this.#reader.values[rule.saidSlot];
    const said = text === undefined ? undefined : costIn(rule.saidAttribute!, text);
    const next = this.#placeAt(rule, 1, checks, at);
    for (let i = at; i < next; i++) checks[i] = { ...checks[i]!, held: { said } };
    return next;
  }

  #placeAt(rule: CompiledRule, charged: number, checks: Check[], at: number): number {
    const override = rule.overrides === undefined ? 0 : rule.overrides.first(this.#reader) + 1;
    const spelled = rule.keys === undefined ? this.#spell(rule) : "";
    const variant = rule.variants === undefined ? 0 : rule.variants.choose(spelled);
    const plan = rule.plans[override]![variant]!;
    checks[at] = { plan, key: this.#keyOf(rule, spelled, plan.keyEnd), cost: charged, live: -1 };
    if (plan.block !== undefined) checks[at] = this.#withBlock(checks[at]!, rule, plan.block);
    if (rule.candidatePlans.length === 0) return at + 1;
    const second = rule.candidatePlans[override]!;
    const key = this.#keyOf(rule, spelled, second.keyEnd);
    checks[at + 1] = { plan: second, key, cost: charged, live: at };
    if (second.block !== undefined) checks[at + 1] = this.#withBlock(checks[at + 1]!, rule, second.block);
    return at + 2;
  }

  /** Only counter keys are cached: a block's key is built each time. */
  #withBlock(check: Check, rule: CompiledRule, { keyEnd, lengthsMs }: NonNullable<CheckPlan["block"]>): Check {
    const key = this.#spellKey(rule, this.#spell(rule), keyEnd);
    return { ...check, block: { key, lengthsMs } };
  }

  #spell(rule: CompiledRule): string {
    const { values } = this.#reader;
    const keyValues: string[] = [];
    for (let i = 0; i < rule.keySlots.length; i++) keyValues.push(values[rule.keySlots[i]!]!);
    return spellEscaped(rule.escapedKey, keyValues);
  }

  /** `spelled`: from `#spell`; not needed if the rule's keys are cached. */
  #keyOf(rule: CompiledRule, spelled: string, end: string): string {
    if (rule.keys === undefined) return this.#spellKey(rule, spelled, end);
    return this.#memo.keyOf(rule.keys, rule.escapedKey, this.#reader.values[rule.keySlots[0]!]!, end);
  }

  #spellKey(rule: CompiledRule, spelled: string, end: string): string {
    const { values } = this.#reader;
    const shared = rule.colocateSlot === -1 ? undefined : values[rule.colocateSlot];
    if (shared === undefined) return counterKey(spelled, end);
    return colocatedKey(spellEscaped(rule.escapedColocate, [shared]), spelled, end);
  }

  #costUnder(rule: CompiledRule, cost: number | undefined): number {
    if (rule.costAttribute === undefined) return cost ?? rule.cost;
    const text = this.#reader.values[rule.costSlot];
    return text === undefined ? 1 : costIn(rule.costAttribute, text);
  }
}

/** For `sluice/internal`. */
export const matcherOf = RuleBook.matcherOf;

/** Whether the rule sets a number anywhere. */
function has(rule: Rule, field: keyof NumberLayer): boolean {
  if (isShedding(rule)) return false;
  const layers: readonly NumberLayer[] = [
    rule,
    ...(rule.candidate === undefined ? [] : [rule.candidate]),
    ...(rule.variants ?? []),
    ...(rule.overrides ?? []),
  ];
  return layers.some((layer) => layer[field] !== undefined);
}

function tooManyRules(count: number): SluiceError {
  return new SluiceError(
    "too-complex",
    `rules: expected at most ${MOST_RULES_APPLIED} that apply to one request, got ${count}`,
  );
}
