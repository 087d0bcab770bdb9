/**
 * A rule being edited: a single object behind the form and the YAML text. Pure; the service validates it.
 * Fields may hold invalid values ("12x" for a limit), so that the service can report them at that field.
 */
import type { Rule } from "../api/shapes.js";

export type Draft = Readonly<Record<string, unknown>>;

export const newDraft: Draft = { id: "", key: ["user"], algorithm: "rolling-window", limit: 100, window: "1m" };

export function draftOf(rule: Rule): Draft {
  return rule as unknown as Draft;
}

/** The value at `candidate.limit`; undefined if any step is missing. */
export function valueAt(draft: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (value, step) =>
      typeof value === "object" && value !== null ? (value as Record<string | number, unknown>)[step] : undefined,
    draft,
  );
}

/** A copy with the value set; undefined removes the field, and parent objects that become empty, except for the draft itself. */
export function withValue(draft: Draft, path: readonly (string | number)[], value: unknown): Draft {
  return put(draft, path, value) as Draft;
}

function put(parent: unknown, [step, ...rest]: readonly (string | number)[], value: unknown): unknown {
  if (step === undefined) return value;
  if (Array.isArray(parent)) return parent.map((item, i) => (i === step ? put(item, rest, value) : item));
  const object = (typeof parent === "object" && parent !== null ? parent : {}) as Record<string, unknown>;
  const below = put(object[step], rest, value);
  const { [step]: _, ...others } = object;
  if (below === undefined || (rest.length > 0 && isEmptyObject(below))) return others;
  // In place, so that an edited field does not move to the end of the text.
  return Object.hasOwn(object, step) ? { ...object, [step]: below } : { ...others, [step]: below };
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

/** The value of a number input: a number if it is one, otherwise the text; undefined if empty. */
export function numberOrText(text: string): number | string | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  return /^-?\d{1,15}(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
}

export function textOrNothing(text: string): string | undefined {
  return text === "" ? undefined : text;
}

/** "user, tier" as a list, and back. */
export function listOf(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

export interface MatchRow {
  readonly name: string;
  readonly values: string;
}

/** A match as form rows: several values are separated by "|". */
export function matchRows(match: unknown): MatchRow[] {
  if (typeof match !== "object" || match === null) return [];
  return Object.entries(match).map(([name, value]) => ({
    name,
    values: Array.isArray(value) ? value.join(" | ") : String(value),
  }));
}

/** Values stay strings: the service compares attributes as text. Undefined for no match: every request. */
export function matchOf(rows: readonly MatchRow[]): Record<string, string | string[]> | undefined {
  const entries = rows
    .filter(({ name }) => name.trim() !== "")
    .map(({ name, values }) => {
      const list = values.split(" | ").map((value) => value.trim());
      return [name.trim(), list.length === 1 ? list[0]! : list] as const;
    });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** The fields of each algorithm; docs/rules.md has the table. The service refuses others. */
export const algorithmFields: Readonly<Record<string, readonly string[]>> = {
  "rolling-window": ["limit", "window", "minInterval", "storage", "prefetch"],
  "fixed-window": ["limit", "window", "align", "timezone", "prefetch"],
  "sliding-counter": ["limit", "window"],
  "token-bucket": ["limit", "window", "prefetch"],
  gcra: ["limit", "window", "burst", "prefetch"],
  concurrency: ["limit", "ttl"],
  "load-shedding": ["limit", "signal", "class", "classes", "fairBy"],
};

const numberFields = [
  ...["window", "refill", "minInterval", "storage", "align", "timezone", "burst", "ttl", "prefetch"],
  ...["signal", "class", "classes", "fairBy"],
];
/** Load-shedding rules do not count, so they do not have these fields. */
const countingFields = ["cost", "unit", "onStoreFailure", "overrides", "candidate", "variants", "colocate"];

/** Switches the algorithm: drops fields that it does not know, and adds a window if it needs one. */
export function withAlgorithm(draft: Draft, algorithm: string): Draft {
  const known = algorithmFields[algorithm] ?? [];
  const kept = Object.fromEntries(
    Object.entries(draft).filter(([name]) => !numberFields.includes(name) || known.includes(name)),
  );
  if (algorithm === "load-shedding") return shedding(kept);
  if (kept.limit === undefined || kept.limit === "auto") kept.limit = 100;
  const needsWindow = known.includes("window") && kept.window === undefined;
  return { ...kept, algorithm, ...(needsWindow && { window: "1m" }) };
}

function shedding(draft: Draft): Draft {
  const others = Object.entries(draft).filter(([name]) => !countingFields.includes(name));
  const { signal = ["inflight"] } = draft;
  return { ...Object.fromEntries(others), algorithm: "load-shedding", signal, limit: "auto", key: [] };
}

/** The path within the rule: the service reports the path in the whole document, `rules[3].limit`. */
export function pathInRule(path: string): string {
  return path.replace(/^rules\[\d+\]\.?/, "");
}
