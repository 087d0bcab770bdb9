/**
 * What no field can show alone: fields that contradict each other, names used twice, layers of numbers that do not add up.
 * In: what was written, perhaps wrong in any place. Values that the field table refuses are passed over here, for they have
 * been reported; so every mistake is told once, and all of them in one go.
 */
import type { Mistake } from "../errors.js";
import { calendarUnits, DEFAULT_ROLLING_STORAGE } from "./compile-policy.js";
import { describeValue } from "./describe-value.js";
import { parseDuration } from "./duration.js";
import { effectiveNumbers, type NumberLayer } from "./effective-numbers.js";
import { algorithmNames, bounds, isObject } from "./field-kinds.js";
import { algorithmsOf } from "./fields.js";
import type { AlgorithmName, NumberFields } from "./rule.js";

type Written = Record<string, unknown>;
type Report = (path: string, message: string) => void;

export function inconsistencies(rules: readonly unknown[], mistakes: Mistake[]): void {
  // Refused for its length already.
  if (rules.length > bounds.rules) return;
  const report: Report = (path, message) => mistakes.push({ path, message });
  reportRepeated({ items: rules, field: "id", path: "rules" }, report);
  rules.forEach((rule, i) => {
    if (isObject(rule)) checkRule(rule, `rules[${i}]`, report);
  });
}

function checkRule(rule: Written, path: string, report: Report): void {
  const key = listIn(rule, "key");
  key.forEach((name, i) => {
    if (typeof name === "string" && key.indexOf(name) < i) {
      report(`${path}.key[${i}]`, `expected each attribute once, got ${describeValue(name)} again`);
    }
  });
  const variants = listIn(rule, "variants");
  if (variants === rule.variants) checkVariants(variants, `${path}.variants`, report);
  checkOverrideAttributes(rule, path, report);
  checkLayers(rule, path, report);
}

function checkVariants(variants: readonly unknown[], path: string, report: Report): void {
  reportRepeated({ items: variants, field: "name", path }, report);
  let sum = 0;
  for (const variant of variants) {
    const weight = isObject(variant) ? variant.weight : undefined;
    // A weight that is no number has been reported; whether the others would do cannot be said.
    if (typeof weight !== "number" || !(weight >= 0)) return;
    sum += weight;
  }
  if (sum <= 0) report(path, `expected weights that sum above 0, got ${sum}`);
}

/** An attribute that the rule neither counts by nor asks for would give one counter two limits. */
function checkOverrideAttributes(rule: Written, path: string, report: Report): void {
  if (!Array.isArray(rule.key)) return;
  const ruleMatch = isObject(rule.match) ? rule.match : {};
  const key = rule.key;
  listIn(rule, "overrides").forEach((override, i) => {
    const match = isObject(override) ? override.match : undefined;
    if (!isObject(match)) return;
    for (const name of Object.keys(match)) {
      if (key.includes(name) || Object.hasOwn(ruleMatch, name)) continue;
      report(
        `${path}.overrides[${i}].match`,
        `expected attributes of the rule's key or match, got ${describeValue(name)}: ` +
          "a counter would have two limits; add it to key or write a rule of its own",
      );
    }
  });
}

/** One layer of numbers over others, with the place where it was written. */
interface Stack {
  readonly layers: readonly NumberLayer[];
  readonly top: Written;
  readonly path: string;
  /** Said after the message where the layers below are not just the rule. */
  readonly beside: string;
}

function checkLayers(rule: Written, path: string, report: Report): void {
  const base = rule as NumberLayer;
  const algorithm = algorithmIn(rule);
  if (algorithm === undefined) return;
  reportUnfit({ layer: rule, algorithms: [algorithm], path }, report);
  checkNumbers({ layers: [base], top: rule, path, beside: "" }, report);

  const others: { layer: NumberLayer; beside: string }[] = [];
  const algorithms = new Set([algorithm]);
  const checkOther = (layer: unknown, at: string, beside: string): void => {
    if (!isObject(layer)) return;
    // An algorithm that does not exist has been reported; what would fit it cannot be said.
    if (layer.algorithm !== undefined && algorithmIn(layer) === undefined) return;
    const own = algorithmIn(layer) ?? algorithm;
    algorithms.add(own);
    reportUnfit({ layer, algorithms: [own], path: at }, report);
    const isSound = checkNumbers({ layers: [base, layer], top: layer, path: at, beside: "" }, report);
    if (isSound) others.push({ layer, beside });
  };
  listIn(rule, "variants").forEach((variant, i) => {
    checkOther(variant, `${path}.variants[${i}]`, ` (under variants[${i}])`);
  });
  checkOther(rule.candidate, `${path}.candidate`, " (under the candidate)");

  listIn(rule, "overrides").forEach((override, i) => {
    if (!isObject(override)) return;
    const at = `${path}.overrides[${i}]`;
    // An algorithm here has been refused; the numbers are judged without it.
    const layer: Written = override.algorithm === undefined ? override : { ...override, algorithm: undefined };
    reportUnfit({ layer, algorithms: [...algorithms], path: at }, report);
    let isSound = checkNumbers({ layers: [base, layer], top: layer, path: at, beside: "" }, report);
    for (const other of others) {
      if (!isSound) break;
      isSound = checkNumbers(
        { layers: [base, other.layer, layer], top: layer, path: at, beside: other.beside },
        report,
      );
    }
  });
}

/** Fields that none of the algorithms knows, or that exclude each other. */
function reportUnfit(
  { layer, algorithms, path }: { layer: Written; algorithms: readonly AlgorithmName[]; path: string },
  report: Report,
): void {
  for (const name of Object.keys(layer)) {
    const knownBy = layer[name] === undefined ? undefined : algorithmsOf(name);
    if (knownBy === undefined || algorithms.some((algorithm) => knownBy.includes(algorithm))) continue;
    report(`${path}.${name}`, `${algorithms.join(" and ")} has no ${name} (only ${knownBy.join(", ")})`);
  }
  if (algorithms.includes("token-bucket") && layer.window !== undefined && layer.refill !== undefined) {
    report(`${path}.refill`, "expected either window or refill, got both");
  }
}

/**
 * Whether the numbers add up under the top layer. A mistake is told where the top layer wrote one of the fields concerned;
 * otherwise it belongs to the layers below, which have been checked before.
 */
function checkNumbers({ layers, top, path, beside }: Stack, report: Report): boolean {
  const numbers: NumberFields & { algorithm: AlgorithmName } = effectiveNumbers(layers);
  const { algorithm, window, align, limit } = numbers;
  let isSound = true;
  const refuse = (concerned: readonly string[], message: string): void => {
    const written = concerned.find((name) => top[name] !== undefined);
    if (written === undefined && top.algorithm === undefined) return;
    isSound = false;
    report(`${path}.${written ?? concerned[0]}`, message + beside);
  };

  if (window === undefined && numbers.refill === undefined && algorithm !== "concurrency") {
    refuse(
      ["window"],
      `expected a duration such as "30s"${algorithm === "token-bucket" ? " (or a refill)" : ""}, got nothing`,
    );
  }
  const windowMs = parseDuration(window);
  const isCalendarWord = calendarUnits.has(window!) && windowMs === undefined;
  if (align === "calendar") {
    if (windowMs !== undefined && !calendarUnits.has(window!)) {
      refuse(
        ["window", "align"],
        `expected "day" (or "1d"), "week" (or "7d") or "month" where align is calendar, got ${describeValue(window)}`,
      );
    }
  } else {
    if (isCalendarWord) {
      const needs = algorithm === "fixed-window" ? "align: calendar" : "a fixed-window";
      refuse(
        ["window", "align"],
        `expected a duration such as "30s", got ${describeValue(window)} (which needs ${needs})`,
      );
    }
    if (algorithm === "fixed-window" && top.timezone !== undefined) {
      refuse(["timezone"], `expected align: calendar beside it, got align: ${align ?? "epoch"}`);
    }
  }
  const minIntervalMs = parseDuration(numbers.minInterval);
  if (minIntervalMs !== undefined && windowMs !== undefined && minIntervalMs > windowMs) {
    refuse(
      ["minInterval", "window"],
      `expected a minInterval of at most the window, got ${describeValue(numbers.minInterval)} in ${describeValue(window)}`,
    );
  }
  if (algorithm === "rolling-window" && (numbers.storage ?? DEFAULT_ROLLING_STORAGE) === "packed") {
    if (Number.isSafeInteger(limit) && (limit as number) > bounds.packedLimit) {
      refuse(["limit", "storage"], `expected at most ${bounds.packedLimit}, or storage: sorted-set, got ${limit}`);
    }
  }
  return isSound;
}

function reportRepeated(
  { items, field, path }: { items: readonly unknown[]; field: string; path: string },
  report: Report,
): void {
  const firstAt = new Map<string, number>();
  items.forEach((item, i) => {
    const name = isObject(item) ? item[field] : undefined;
    if (typeof name !== "string") return;
    const first = firstAt.get(name);
    if (first === undefined) firstAt.set(name, i);
    else
      report(
        `${path}[${i}].${field}`,
        `expected a unique ${field}, got ${describeValue(name)}, which ${path}[${first}] has`,
      );
  });
}

function algorithmIn(layer: Written): AlgorithmName | undefined {
  return algorithmNames.find((name) => name === layer.algorithm);
}

/** A list longer than its bound is refused as a whole, and not looked into. */
function listIn(rule: Written, name: "key" | "overrides" | "variants"): readonly unknown[] {
  const list = rule[name];
  const most = { key: bounds.keyAttributes, overrides: bounds.overrides, variants: bounds.variants }[name];
  return Array.isArray(list) && list.length <= most ? list : [];
}
