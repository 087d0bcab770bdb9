/**
 * Warns of a rule that is valid and most likely not meant: one that never decides because another is stricter, one that makes another
 * needless, and a change after which counters begin anew. Pure.
 * Silent where the rules alone do not decide it: another algorithm or window, overrides, variants, patterns that neither equal nor contain.
 */
import type { Mistake, Rule } from "sluice";
import { parseDuration } from "sluice/internal";

const MOST_WARNINGS = 5;

interface Comparable {
  readonly limit: number;
  readonly windowMs: number;
  /** As it is written. */
  readonly window: string;
}

export function conflictingRules(written: Rule, rules: readonly Rule[]): Mistake[] {
  const own = comparable(written);
  if (own === undefined) return [];
  const warnings: Mistake[] = [];
  for (const other of rules) {
    if (warnings.length === MOST_WARNINGS) break;
    if (other.id === written.id || other.algorithm !== written.algorithm || !isSameKey(other, written)) continue;
    const its = comparable(other);
    if (its === undefined || its.windowMs !== own.windowMs) continue;
    const message = conflict({ written, own, other, its });
    if (message !== undefined) warnings.push({ path: "limit", message });
  }
  return warnings;
}

/** Fields of rules whose numbers alone decide. Any other (overrides, variants, burst, cost …) may change which of two rules refuses first. */
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

/** Whether every request that `inner` matches is surely matched by `outer`. */
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

/** Fields whose change gives the counters other names, or another stored form. */
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
