/**
 * Warns about rules that are valid but probably unintended: one that never decides because another is stricter, one that makes another
 * redundant, and a change that resets counters. Pure.
 * Silent if the rules alone do not determine it: different algorithms or windows, overrides, variants, patterns that are neither equal nor
 * nested.
 */
import type { Mistake, Rule } from "sluice";
import { parseDuration, type Sliced, Stride } from "sluice/internal";

const MOST_WARNINGS = 5;

interface Comparable {
  readonly limit: number;
  readonly windowMs: number;
  /** In its original notation. */
  readonly window: string;
}

/** In slices: among tens of thousands of rules the search takes a tenth of a second. */
export function* findingConflicts(written: Rule, rules: readonly Rule[]): Sliced<Mistake[]> {
  const own = comparable(written);
  if (own === undefined) return [];
  const stride = new Stride();
  const warnings: Mistake[] = [];
  for (const other of rules) {
    if (stride.isOver()) yield;
    if (warnings.length === MOST_WARNINGS) break;
    if (other.id === written.id || other.algorithm !== written.algorithm || !isSameKey(other, written)) continue;
    const its = comparable(other);
    if (its === undefined || its.windowMs !== own.windowMs) continue;
    const message = conflict({ written, own, other, its });
    if (message !== undefined) warnings.push({ path: "limit", message });
  }
  return warnings;
}

/**
 * The fields of rules that are determined by their numbers. Any other (overrides, variants, burst, cost …) may change which of two rules
 * refuses first.
 */
const plainFields: ReadonlySet<string> = new Set([
  "id",
  "description",
  "tags",
  "match",
  "key",
  "algorithm",
  "limit",
  "window",
  "mode",
  "onStoreFailure",
]);

function comparable(rule: Rule): Comparable | undefined {
  const { mode = "enforce", limit } = rule;
  if (mode !== "enforce" || typeof limit !== "number" || !("window" in rule)) return undefined;
  if (!Object.keys(rule).every((name) => plainFields.has(name))) return undefined;
  const windowMs = parseDuration(rule.window);
  return windowMs === undefined ? undefined : { limit, windowMs, window: String(rule.window) };
}

function isSameKey(a: Rule, b: Rule): boolean {
  return a.key.length === b.key.length && a.key.every((name) => b.key.includes(name));
}

interface Pair {
  readonly written: Rule;
  readonly own: Comparable;
  readonly other: Rule;
  readonly its: Comparable;
}

function conflict({ written, own, other, its }: Pair): string | undefined {
  const isCovered = covers(other.match, written.match);
  const isCovering = covers(written.match, other.match);
  const numbers = `${its.limit} in ${its.window}`;
  if (isCovered && isCovering && own.limit !== its.limit) {
    return `the rule ${other.id} limits the same requests by the same key to ${numbers}: only the lower limit counts`;
  }
  if (isCovered && its.limit <= own.limit) {
    return `the rule ${other.id} matches every request of this one, counts by the same key and allows ${numbers}: this rule never refuses first`;
  }
  if (isCovering && own.limit <= its.limit) {
    return `this rule matches every request of ${other.id}, counts by the same key and allows no more than its ${numbers}: ${other.id} never refuses first`;
  }
  return undefined;
}

/** Whether every request matched by `inner` is certainly matched by `outer`. */
function covers(outer: Rule["match"] = {}, inner: Rule["match"] = {}): boolean {
  return Object.entries(outer).every(([name, value]) => {
    if (!Object.hasOwn(inner, name)) return false;
    const wide = [value].flat();
    return [inner[name]].flat().every((one) => wide.some((pattern) => contains(pattern, one)));
  });
}

function contains(outer: unknown, inner: unknown): boolean {
  if (typeof outer !== "string" || typeof inner !== "string") return false;
  if (outer === inner || outer === "**") return true;
  const isPlain = !/[*?[{!]/.test(outer.slice(0, -2));
  return outer.endsWith("/**") && isPlain && inner.startsWith(outer.slice(0, -2));
}

/** Warns if the change renames the counters or alters their stored form, so that they start from zero. */
export function countersBeginAnew(before: Rule | undefined, written: Rule): Mistake[] {
  if (before === undefined) return [];
  const anew = "counters begin anew: what keys have used so far is forgotten";
  const named = (names: readonly string[]): string => (names.length === 0 ? "one counter for all" : names.join(", "));
  if (named(before.key) !== named(written.key)) {
    return [
      { path: "key", message: `counted by ${named(before.key)} until now, then by ${named(written.key)}; ${anew}` },
    ];
  }
  if (before.algorithm !== written.algorithm) {
    return [{ path: "algorithm", message: `${before.algorithm} until now; ${anew}` }];
  }
  if (before.colocate !== written.colocate) return [{ path: "colocate", message: `counters get other names; ${anew}` }];
  return [];
}
