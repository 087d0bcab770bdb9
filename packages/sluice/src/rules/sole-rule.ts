/**
 * A book whose only rule counts by one attribute and needs nothing else, like the first rule of most programs: its requests are found by
 * the attribute's value alone, without slots, index and lists. Measured: a fifth of a check in memory. In: attributes. Out: the request for
 * the store; undefined for attributes that the rule does not apply to, or whose value is not a string: the book itself then decides what
 * happens to them. Requests are cached in two generations, like the keys in `key-memo.ts`, and for the same reason.
 */
import type { CheckPlan } from "../check.js";
import { counterKey, spellEscaped } from "../keys.js";
import { SoleRequest } from "../sole-request.js";
import type { CompiledRule } from "./compiled-rule.js";
import type { Attributes } from "./rule.js";

/** Per generation. */
const MOST_REQUESTS = 16_384;
const LONGEST_VALUE = 128;

export class SoleRule {
  readonly #attribute: string;
  readonly #escaped: readonly string[];
  #plan: CheckPlan;
  readonly #cost: number;
  readonly #version: number;
  /** Whether its units can be prefetched. */
  readonly prefetches: boolean;
  #young = new Map<string, SoleRequest>();
  #old = new Map<string, SoleRequest>();

  private constructor(rule: CompiledRule, attribute: string, version: number) {
    this.#attribute = attribute;
    this.#escaped = rule.escapedKey;
    this.#plan = rule.plans[0]![0]!;
    this.#cost = rule.cost;
    this.prefetches = this.#plan.prefetchMs > 0;
    this.#version = version;
  }

  /** Undefined if the book has other rules, or its rule needs more. */
  static in(compiled: readonly CompiledRule[], version: number): SoleRule | undefined {
    const [rule, second] = compiled;
    if (rule === undefined || second !== undefined || rule.soleAttribute === undefined) return undefined;
    return new SoleRule(rule, rule.soleAttribute, version);
  }

  /** Requests made before keep their plan. */
  planWith(plan: CheckPlan): void {
    this.#plan = plan;
    this.#young = new Map();
    this.#old = new Map();
  }

  requestOf(attributes: Attributes): SoleRequest | undefined {
    if (typeof attributes !== "object" || attributes === null || Array.isArray(attributes)) return undefined;
    // Like the attribute reader: own enumerable fields only.
    for (const name in attributes) {
      if (name !== this.#attribute || !Object.hasOwn(attributes, name)) continue;
      const value = attributes[name];
      return typeof value === "string" ? (this.#young.get(value) ?? this.#made(value)) : undefined;
    }
    return undefined;
  }

  #made(value: string): SoleRequest {
    let request = this.#old.get(value);
    if (request === undefined) {
      const key = counterKey(spellEscaped(this.#escaped, [value]), this.#plan.keyEnd);
      request = new SoleRequest(this.#plan, key, this.#cost, this.#version);
    }
    if (value.length > LONGEST_VALUE) return request;
    this.#young.set(value, request);
    if (this.#young.size >= MOST_REQUESTS) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    return request;
  }
}
