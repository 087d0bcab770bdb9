/**
 * The numbers in force where layers lie over each other: the rule, then a variant or the candidate, then an override.
 * The last layer that names an algorithm decides it; every field that this algorithm knows comes from the last layer that
 * has it; the others are left out, so that a token bucket may stand beside a rolling window with a minInterval. Pure.
 */
import { numberFieldsOf } from "./fields.js";
import type { AlgorithmName, AlgorithmNumbers, NumberFields } from "./rule.js";

export interface NumberLayer extends NumberFields {
  algorithm?: AlgorithmName;
}

type Merged = { -readonly [Name in keyof NumberLayer]: NumberLayer[Name] | undefined };

/** `layers` from the lowest to the highest; one of them has an algorithm. */
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
    // A bucket fills over its window or by its refill: a layer that names one of them displaces the other.
    if (algorithm === "token-bucket") {
      if (layer.refill !== undefined) merged.window = layer.window;
      else if (layer.window !== undefined) merged.refill = undefined;
    }
  }
  // A layer that goes back to epoch windows leaves no use for the time zone below it.
  if (merged.align !== "calendar") merged.timezone = undefined;
  return merged as AlgorithmNumbers;
}
