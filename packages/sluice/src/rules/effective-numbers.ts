/**
 * The numbers in force after layering: the rule, then a variant or the candidate, then an override. The last layer that names an algorithm
 * determines it. Every field that this algorithm has comes from the last layer that sets it; other fields are dropped, so that a token
 * bucket may be combined with a rolling window with a minInterval. Pure.
 */
import { numberFieldsOf } from "./fields.js";
import type { AlgorithmName, AlgorithmNumbers, NumberFields } from "./rule.js";

export interface NumberLayer extends NumberFields {
  algorithm?: AlgorithmName;
}

type Merged = { -readonly [Name in keyof NumberLayer]: NumberLayer[Name] | undefined };

/** `layers` from lowest to highest; one of them has an algorithm. */
export function effectiveNumbers(layers: readonly NumberLayer[]): AlgorithmNumbers {
  let algorithm: AlgorithmName | undefined;
  for (const layer of layers) algorithm = layer.algorithm ?? algorithm;
  const names = numberFieldsOf.get(algorithm!)!;
  const merged: Merged = { algorithm };
  for (const layer of layers) {
    for (const name of names) {
      if (layer[name] === undefined) continue;
      (merged as Record<string, unknown>)[name] = layer[name];
    }
    // A bucket fills over its window or by its refill: a layer that sets one of them displaces the other.
    if (algorithm === "token-bucket") {
      if (layer.refill !== undefined) merged.window = layer.window;
      else if (layer.window !== undefined) merged.refill = undefined;
    }
  }
  // A layer that goes back to epoch windows makes the time zone below it irrelevant.
  if (merged.align !== "calendar") merged.timezone = undefined;
  return merged as AlgorithmNumbers;
}
