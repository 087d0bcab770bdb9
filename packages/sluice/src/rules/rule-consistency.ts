/**
 * Mistakes that no single field shows: contradicting fields, names used twice, layers of numbers that do not add up. In: what was written,
 * possibly wrong anywhere. Values that the field table refuses are skipped here, because they have been reported; so every mistake is
 * reported once, and all of them together.
 */

import type { Sliced, Stride } from "../time-slices.js";
import { checkEstimate } from "./check-estimate.js";
import { checkGlobal } from "./check-scope.js";
import { checkShedding } from "./check-shedding.js";
import { calendarUnits, DEFAULT_ROLLING_STORAGE } from "./compile-policy.js";
import { describeValue } from "./describe-value.js";
import { parseDuration } from "./duration.js";
import { effectiveNumbers, type NumberLayer } from "./effective-numbers.js";
import { algorithmNames, bounds, isObject } from "./field-kinds.js";
import { algorithmsOf, rule as ruleFields } from "./fields.js";
import type { Findings } from "./findings.js";
import type { AlgorithmName, NumberFields } from "./rule.js";

type Written = Record<string, unknown>;
type Report = (path: string, message: string) => void;

/** Where a rule's mistakes are reported, and the stride of the search. */
interface Search {
  readonly report: Report;
  readonly stride: Stride;
}

export function* findingInconsistencies(rules: readonly unknown[], findings: Findings): Sliced<void> {
  const { stride } = findings;
  // Already refused for its length.
  if (rules.length > bounds.rules) return;
  const report: Report = (path, message) => findings.add(path, message);
  const search: Search = { report, stride };
  yield* findingRepeated({ items: rules, field: "id", path: "rules" }, search);
  for (let i = 0; i < rules.length; i++) {
    const rule = rules[i];
    if (isObject(rule)) yield* checkingRule(rule, `rules[${i}]`, search);
    if (stride.isOver()) yield;
  }
}

function* checkingRule(rule: Written, path: string, search: Search): Sliced<void> {
  const key = listIn(rule, "key");
  key.forEach((name, i) => {
    if (typeof name === "string" && key.indexOf(name) < i) {
      search.report(`${path}.key[${i}]`, `expected each attribute once, got ${describeValue(name)} again`);
    }
  });
  const variants = listIn(rule, "variants");
  if (variants === rule.variants) yield* checkingVariants(variants, `${path}.variants`, search);
  yield* checkingOverrideAttributes(rule, path, search);
  yield* checkingLayers(rule, path, search);
}

function* checkingVariants(variants: readonly unknown[], path: string, search: Search): Sliced<void> {
  yield* findingRepeated({ items: variants, field: "name", path }, search);
  let sum = 0;
  for (const variant of variants) {
    const weight = isObject(variant) ? variant.weight : undefined;
    // A weight that is not a number has been reported; the sum of the others is then meaningless.
    if (typeof weight !== "number" || !(weight >= 0)) return;
    sum += weight;
  }
  if (sum <= 0) search.report(path, `expected weights that sum above 0, got ${sum}`);
}

/** An attribute that is in neither the rule's key nor its match would give one counter two limits. */
function* checkingOverrideAttributes(rule: Written, path: string, { report, stride }: Search): Sliced<void> {
  if (!Array.isArray(rule.key)) return;
  const ruleMatch = isObject(rule.match) ? rule.match : {};
  const key = rule.key;
  const overrides = listIn(rule, "overrides");
  for (let i = 0; i < overrides.length; i++) {
    const override = overrides[i];
    const match = isObject(override) ? override.match : undefined;
    if (!isObject(match)) continue;
    for (const name of Object.keys(match)) {
      if (key.includes(name) || Object.hasOwn(ruleMatch, name)) continue;
      report(
        `${path}.overrides[${i}].match`,
        `expected attributes of the rule's key or match, got ${describeValue(name)}: ` +
          "a counter would have two limits; add it to key or write a rule of its own",
      );
    }
    if (stride.isOver()) yield;
  }
}

/** One layer of numbers over others, with the path where it was written. */
interface Stack {
  readonly layers: readonly NumberLayer[];
  readonly top: Written;
  readonly path: string;
  /** Appended to the message if the layers below are more than just the rule. */
  readonly beside: string;
}

function* checkingLayers(rule: Written, path: string, { report, stride }: Search): Sliced<void> {
  const base = rule as NumberLayer;
  const algorithm = algorithmIn(rule);
  if (algorithm === undefined) return;
  reportUnfit({ layer: rule, algorithms: [algorithm], path }, report);
  if (algorithm === "load-shedding") {
    checkShedding(rule, path, report);
    return;
  }
  checkLimit(rule, path, report);
  checkAdapt(rule, path, report);
  checkEstimate(rule, path, report);
  checkNumbers({ layers: [base], top: rule, path, beside: "" }, report);

  const others: { layer: NumberLayer; beside: string }[] = [];
  const algorithms = new Set([algorithm]);
  const checkOther = (layer: unknown, at: string, beside: string): void => {
    if (!isObject(layer)) return;
    // An unknown algorithm has been reported; what would fit it is unknown.
    if (layer.algorithm !== undefined && algorithmIn(layer) === undefined) return;
    const own = algorithmIn(layer) ?? algorithm;
    if (own === "load-shedding") {
      report(`${at}.algorithm`, "expected an algorithm that counts: load-shedding stands in a rule of its own");
      return;
    }
    algorithms.add(own);
    reportUnfit({ layer, algorithms: [own], path: at }, report);
    const isSound = checkNumbers({ layers: [base, layer], top: layer, path: at, beside: "" }, report);
    if (isSound) others.push({ layer, beside });
  };
  listIn(rule, "variants").forEach((variant, i) => {
    checkOther(variant, `${path}.variants[${i}]`, ` (under variants[${i}])`);
  });
  checkOther(rule.candidate, `${path}.candidate`, " (under the candidate)");

  const known = [...algorithms];
  const overrides = listIn(rule, "overrides");
  for (let i = 0; i < overrides.length; i++) {
    const override = overrides[i];
    if (!isObject(override)) continue;
    const at = `${path}.overrides[${i}]`;
    // An algorithm here has been refused; the numbers are checked without it.
    const layer: Written = override.algorithm === undefined ? override : { ...override, algorithm: undefined };
    reportUnfit({ layer, algorithms: known, path: at }, report);
    let isSound = checkNumbers({ layers: [base, layer], top: layer, path: at, beside: "" }, report);
    for (const other of others) {
      if (!isSound) break;
      isSound = checkNumbers(
        { layers: [base, other.layer, layer], top: layer, path: at, beside: other.beside },
        report,
      );
    }
    stride.add(others.length);
    if (stride.isOver()) yield;
  }
}

/** Every algorithm except load shedding needs a number. */
function checkLimit({ limit }: Written, path: string, report: Report): void {
  if (limit !== undefined && limit !== "auto") return;
  const { expected } = ruleFields.fields.get("limit")!.shape as { expected: string };
  const only = limit === "auto" ? " (only load-shedding estimates its limit)" : "";
  report(`${path}.limit`, `expected ${expected}, got ${describeValue(limit)}${only}`);
}

/** A moving limit must start within its range, and prefetched units would not see it move. */
function checkAdapt({ adapt, limit, prefetch, algorithm, storage }: Written, path: string, report: Report): void {
  if (!isObject(adapt)) return;
  const { min, max } = adapt;
  if (typeof min === "number" && typeof max === "number" && min > max) {
    report(`${path}.adapt.min`, `expected at most max (${max}), got ${min}`);
  } else if (typeof limit === "number" && typeof min === "number" && typeof max === "number") {
    if (limit < min || limit > max)
      report(`${path}.limit`, `expected a limit from ${min} to ${max} (adapt), got ${limit}`);
  }
  if (prefetch !== undefined) {
    report(`${path}.adapt`, "expected either adapt or prefetch, got both: units in hand do not see a limit that moves");
  }
  const isPacked = algorithm === "rolling-window" && (storage ?? DEFAULT_ROLLING_STORAGE) === "packed";
  if (isPacked && typeof max === "number" && max > bounds.packedLimit) {
    report(`${path}.adapt.max`, `expected at most ${bounds.packedLimit}, or storage: sorted-set, got ${max}`);
  }
}

/** Reports fields that none of the algorithms has, or that exclude each other. */
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
 * Whether the numbers add up under the top layer. A mistake is reported where the top layer set one of the fields concerned; otherwise it
 * belongs to the layers below, which have been checked before.
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
  checkPrefetch(numbers, refuse);
  checkMaxWait(numbers, refuse);
  if ((layers[0] as Written).scope === "global") checkGlobal(numbers, layers[0] as Written, refuse);
  if (algorithm === "rolling-window" && (numbers.storage ?? DEFAULT_ROLLING_STORAGE) === "packed") {
    if (Number.isSafeInteger(limit) && (limit as number) > bounds.packedLimit) {
      refuse(["limit", "storage"], `expected at most ${bounds.packedLimit}, or storage: sorted-set, got ${limit}`);
    }
  }
  return isSound;
}

type Refuse = (concerned: readonly string[], message: string) => void;

/** Prefetched units must be worth less than the whole counter, and cannot keep an interval between each other. */
function checkPrefetch(numbers: NumberFields & { algorithm: AlgorithmName }, refuse: Refuse): void {
  const { prefetch, window, refill, limit, burst, minInterval, blockFor } = numbers;
  const prefetchMs = parseDuration(prefetch);
  if (prefetchMs === undefined) return;
  if (minInterval !== undefined) {
    refuse(
      ["prefetch", "minInterval"],
      "expected either prefetch or minInterval, got both: units in hand keep no distance",
    );
  }
  if (blockFor !== undefined) {
    refuse(
      ["prefetch", "blockFor"],
      "expected either prefetch or blockFor, got both: units in hand do not see a block",
    );
  }
  const windowMs = parseDuration(window);
  if (windowMs !== undefined && prefetchMs > windowMs) {
    const got = `${describeValue(prefetch)} in ${describeValue(window)}`;
    refuse(["prefetch", "window"], `expected a prefetch of at most the window, got ${got}`);
    return;
  }
  const everyMs = windowMs ?? parseDuration(refill?.every);
  const amount = refill?.amount ?? limit;
  const capacity = burst ?? limit;
  const isBucket = numbers.algorithm === "token-bucket" || numbers.algorithm === "gcra";
  if (!isBucket || everyMs === undefined || typeof amount !== "number" || typeof capacity !== "number") return;
  const refilled = (amount * prefetchMs) / everyMs;
  // A limit of 0 hands out nothing.
  if (capacity > refilled || limit === 0) return;
  const name = burst === undefined ? "limit" : "burst";
  refuse(
    ["prefetch", name, "refill", "window"],
    `expected a ${name} above the ${Math.ceil(refilled)} units that refill in ${describeValue(prefetch)}, got ${capacity}`,
  );
}

/** Turns are instants of one counter: prefetched units have none, and the store does not know a calendar's next window. */
function checkMaxWait({ maxWait, prefetch, align }: NumberFields, refuse: Refuse): void {
  if (maxWait === undefined) return;
  if (prefetch !== undefined) {
    refuse(["maxWait", "prefetch"], "expected either maxWait or prefetch, got both: units in hand have no turns");
  }
  if (align === "calendar") {
    refuse(
      ["maxWait", "align"],
      "expected either maxWait or align: calendar, got both: turns need windows of one length",
    );
  }
}

function* findingRepeated(
  { items, field, path }: { items: readonly unknown[]; field: string; path: string },
  { report, stride }: Search,
): Sliced<void> {
  const firstAt = new Map<string, number>();
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    const name = isObject(item) ? item[field] : undefined;
    if (stride.isOver()) yield;
    if (typeof name !== "string") continue;
    const first = firstAt.get(name);
    if (first === undefined) firstAt.set(name, i);
    else
      report(
        `${path}[${i}].${field}`,
        `expected a unique ${field}, got ${describeValue(name)}, which ${path}[${first}] has`,
      );
  }
}

function algorithmIn(layer: Written): AlgorithmName | undefined {
  return algorithmNames.find((name) => name === layer.algorithm);
}

/** A list longer than its bound is refused as a whole and not inspected. */
function listIn(rule: Written, name: "key" | "overrides" | "variants"): readonly unknown[] {
  const list = rule[name];
  const most = { key: bounds.keyAttributes, overrides: bounds.overrides, variants: bounds.variants }[name];
  return Array.isArray(list) && list.length <= most ? list : [];
}
