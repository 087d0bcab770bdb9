/**
 * A load-shedding rule prepared for requests: its signals, its classes and their thresholds. In: a validated rule. Pure.
 */
import type { LoadSignal, SheddingRule } from "./rule.js";

export const DEFAULT_CLASSES: Readonly<Record<string, number>> = {
  sheddable: 0.85,
  normal: 0.92,
  important: 1,
  critical: 2,
};

/** The only class of a rule that names none, shed at a utilisation of 1. */
const ONLY_CLASS = "all";

export interface SheddingPlan {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  readonly signals: ReadonlySet<LoadSignal>;
  /** Undefined if requests in flight do not count. */
  readonly limit: number | "auto" | undefined;
  readonly classNames: readonly string[];
  readonly thresholds: readonly number[];
  /** A Map, because a request may name the class "constructor". */
  readonly classIndex: ReadonlyMap<string, number>;
  readonly defaultClass: number;
  readonly isFair: boolean;
  /** Equal for rules that do not differ in this plan: their gauges survive when other rules change. */
  readonly signature: string;
}

/** The utilisation at which each class of a rule is shed. */
export function sheddingClasses(rule: SheddingRule): Readonly<Record<string, number>> {
  return rule.class === undefined ? { [ONLY_CLASS]: 1 } : (rule.classes ?? DEFAULT_CLASSES);
}

export function sheddingPlan(rule: SheddingRule): SheddingPlan {
  const { signal, limit, fairBy } = rule;
  const classes = sheddingClasses(rule);
  const classNames = Object.keys(classes);
  const thresholds = Object.values(classes);
  const signals: readonly LoadSignal[] = typeof signal === "string" ? [signal] : signal;
  return {
    rule: rule.id,
    mode: rule.mode === "shadow" ? "shadow" : "enforce",
    signals: new Set(signals),
    limit,
    classNames,
    thresholds,
    classIndex: new Map(classNames.map((name, i) => [name, i])),
    defaultClass: rule.class === undefined ? 0 : classNames.indexOf(rule.class.default),
    isFair: fairBy !== undefined,
    signature: JSON.stringify([signals, limit, classNames, thresholds, fairBy !== undefined, rule.key]),
  };
}
