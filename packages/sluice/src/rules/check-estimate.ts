/**
 * Mistakes about `estimate` that no single field shows. In: a rule as written, possibly wrong anywhere; values that the field table refuses
 * have been reported, and are skipped here. Pure.
 */
import { isObject } from "./field-kinds.js";

type Written = Record<string, unknown>;
type Report = (path: string, message: string) => void;

export function checkEstimate(rule: Written, path: string, report: Report): void {
  const { estimate, cost } = rule;
  if (!isObject(estimate)) return;
  if (!isObject(cost)) {
    report(`${path}.cost`, "expected {attribute: name} beside estimate: settle tells the real cost by it");
  } else if (estimate.attribute !== undefined && estimate.attribute === cost.attribute) {
    report(
      `${path}.estimate.attribute`,
      "expected another attribute than the cost's: a request that has the cost needs no estimate",
    );
  }
  for (const [layer, at] of layersOf(rule, path)) {
    if (layer.prefetch !== undefined)
      report(`${at}.prefetch`, "expected either estimate or prefetch, got both: units in hand cannot be reserved");
    if (layer.maxWait !== undefined)
      report(`${at}.maxWait`, "expected either estimate or maxWait, got both: what is held until later has no turn");
    if (layer.algorithm === "concurrency")
      report(`${at}.algorithm`, 'expected an algorithm that counts units beside estimate, got "concurrency"');
  }
}

/** Each set of numbers that can apply to a key of the rule, with its path. */
function layersOf(rule: Written, path: string): (readonly [Written, string])[] {
  const listed = (name: "variants" | "overrides"): (readonly [unknown, string])[] => {
    const list = rule[name];
    return Array.isArray(list) ? list.map((layer, i) => [layer, `${path}.${name}[${i}]`] as const) : [];
  };
  const layers: (readonly [unknown, string])[] = [
    [{ prefetch: rule.prefetch, maxWait: rule.maxWait }, path],
    [rule.candidate, `${path}.candidate`],
    ...listed("variants"),
    ...listed("overrides"),
  ];
  return layers.filter((entry): entry is readonly [Written, string] => isObject(entry[0]));
}
