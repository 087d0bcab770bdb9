/**
 * The bytes that a rule's key takes in Redis at its limit, from the memory model. Variants count by weight, and a candidate's counter is
 * added; overrides are left out, because which keys they match is unknown here. Pure.
 */
import { fullKeyBytes } from "../algorithms/memory-model.js";
import { compilePolicy } from "./compile-policy.js";
import { effectiveNumbers, type NumberLayer } from "./effective-numbers.js";
import type { CountingRule } from "./rule.js";

/** `keyLength`: length of the key's name in Redis, in characters. */
export function fullRuleKeyBytes(rule: CountingRule, keyLength: number): number {
  const bytesOf = (layer: NumberLayer) => fullKeyBytes(compilePolicy(effectiveNumbers([rule, layer])), keyLength);
  const variants: readonly (NumberLayer & { weight: number })[] = rule.variants ?? [{ weight: 1 }];
  const weights = variants.reduce((sum, { weight }) => sum + weight, 0);
  const live = variants.reduce((sum, variant) => sum + (bytesOf(variant) * variant.weight) / weights, 0);
  return live + (rule.candidate === undefined ? 0 : bytesOf(rule.candidate));
}
