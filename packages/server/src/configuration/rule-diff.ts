/**
 * The difference between two rule lists, by rule and field: stored with every version, shown by a dry run, sent with a 412.
 * In: two validated lists. Out: changes in the order of the new list, removals last. Pure but for the slice.
 */
import type { Rule } from "sluice";
import type { TimeSlice } from "sluice/internal";

export interface FieldChange {
  /** `limit`, `match.path`, `overrides[{"user":"acme"}].limit`. */
  readonly path: string;
  /** Absent: the field was not there. */
  readonly from?: unknown;
  readonly to?: unknown;
}

export interface RuleChange {
  readonly rule: string;
  readonly change: "added" | "removed" | "changed";
  /** For `changed`: the first of them. */
  readonly fields?: readonly FieldChange[];
  /** How many more fields changed than are listed. */
  readonly more?: number;
}

export interface RuleDiff {
  readonly added: number;
  readonly removed: number;
  readonly changed: number;
  /** Rules that both lists have stand in another order. */
  readonly reordered: boolean;
  /** The first of them; the counts above are complete. */
  readonly changes: readonly RuleChange[];
}

/** A diff is stored with every version and read by people: it stays short, however large the change. */
const MOST_CHANGES = 1_000;
const MOST_FIELDS = 50;

export async function diffRules(from: readonly Rule[], to: readonly Rule[], slice: TimeSlice): Promise<RuleDiff> {
  const before = new Map<string, Rule>();
  for (const rule of from) {
    if (slice.isOver()) await slice.next();
    before.set(rule.id, rule);
  }
  const after = new Set<string>();
  const changes: RuleChange[] = [];
  const counts = { added: 0, removed: 0, changed: 0 };
  const note = (change: RuleChange): void => {
    counts[change.change]++;
    if (changes.length < MOST_CHANGES) changes.push(change);
  };
  for (const rule of to) {
    if (slice.isOver()) await slice.next();
    after.add(rule.id);
    const old = before.get(rule.id);
    if (old === undefined) note({ rule: rule.id, change: "added" });
    else if (!(await isSameRule(old, rule, slice))) {
      const found = await diffFields(old, rule, slice);
      if (found.count > 0) note(changedRule(rule.id, found));
    }
  }
  for (const rule of from) {
    if (slice.isOver()) await slice.next();
    if (!after.has(rule.id)) note({ rule: rule.id, change: "removed" });
  }
  const reordered = await isReordered({ from, to, before, after }, slice);
  return { ...counts, reordered, changes };
}

/** Whether the rules that both lists have stand in another order: both are walked at once, past what only one has. */
async function isReordered(
  lists: {
    from: readonly Rule[];
    to: readonly Rule[];
    before: ReadonlyMap<string, Rule>;
    after: ReadonlySet<string>;
  },
  slice: TimeSlice,
): Promise<boolean> {
  const { from, to, before, after } = lists;
  let next = 0;
  for (const { id } of from) {
    if (slice.isOver()) await slice.next();
    if (!after.has(id)) continue;
    while (!before.has(to[next]!.id)) {
      if (slice.isOver()) await slice.next();
      next++;
    }
    if (to[next++]!.id !== id) return true;
  }
  return false;
}

export function isEmpty({ added, removed, changed, reordered }: RuleDiff): boolean {
  return added + removed + changed === 0 && !reordered;
}

/** A rule with very many overrides is compared in slices, with the others' difference. */
async function isSameRule(old: Rule, rule: Rule, slice: TimeSlice): Promise<boolean> {
  if (old === rule) return true;
  if (slice.isOver()) await slice.next();
  return (rule.overrides?.length ?? 0) < 1_000 && isSame(old, rule);
}

function changedRule(rule: string, { fields, count }: Found): RuleChange {
  return { rule, change: "changed", fields, ...(count > fields.length && { more: count - fields.length }) };
}

interface Found {
  readonly fields: FieldChange[];
  count: number;
}

async function diffFields(from: Rule, to: Rule, slice: TimeSlice): Promise<Found> {
  const found: Found = { fields: [], count: 0 };
  const { overrides: oldOverrides = [], ...old } = from;
  const { overrides = [], ...rest } = to;
  diffObjects(old, rest, "", found);
  await diffOverrides(oldOverrides, overrides, { found, slice });
  return found;
}

function add(found: Found, change: FieldChange): void {
  found.count++;
  if (found.fields.length < MOST_FIELDS) found.fields.push(change);
}

function diffObjects(from: object, to: object, path: string, found: Found): void {
  const old = from as Record<string, unknown>;
  const now = to as Record<string, unknown>;
  for (const name of new Set([...Object.keys(old), ...Object.keys(now)])) {
    const was = Object.hasOwn(old, name) ? old[name] : undefined;
    const is = Object.hasOwn(now, name) ? now[name] : undefined;
    const at = path === "" ? name : `${path}.${name}`;
    if (isPlain(was) && isPlain(is)) diffObjects(was, is, at, found);
    else if (!isSame(was, is)) {
      add(found, { path: at, ...(was !== undefined && { from: was }), ...(is !== undefined && { to: is }) });
    }
  }
}

type Overrides = NonNullable<Rule["overrides"]>;

/** By what they match rather than by place: one inserted at the front does not change all behind it. */
async function diffOverrides(from: Overrides, to: Overrides, { found, slice }: { found: Found; slice: TimeSlice }) {
  const compare = (old: Overrides[number], now: Overrides[number]) => {
    if (!isSame(old, now)) diffObjects(old, now, `overrides[${spell(now.match)}]`, found);
  };
  // Most stay where they were, and are compared in place; only what lies between is looked up, for that takes memory.
  let first = 0;
  for (; first < from.length && first < to.length && isSame(from[first]!.match, to[first]!.match); first++) {
    if (slice.isOver()) await slice.next();
    compare(from[first]!, to[first]!);
  }
  const before = new Map<string, Overrides[number]>();
  for (const override of from.slice(first)) {
    if (slice.isOver()) await slice.next();
    before.set(spell(override.match), override);
  }
  const seen = new Set<string>();
  for (const override of to.slice(first)) {
    if (slice.isOver()) await slice.next();
    const name = spell(override.match);
    const old = before.get(name);
    seen.add(name);
    if (old === undefined) add(found, { path: `overrides[${name}]`, to: override });
    else compare(old, override);
  }
  const gone = [...before].filter(([name]) => !seen.has(name));
  for (const [name, override] of gone) add(found, { path: `overrides[${name}]`, from: override });
  // Where some came or went, places differ anyway, and that has been told.
  const isMoved = seen.size > 0 && seen.size === before.size && gone.length === 0;
  if (isMoved) add(found, { path: "overrides", from: "in another order", to: "reordered" });
}

/** Equal as JSON, whatever the order of fields. Makes nothing: it runs over a hundred thousand overrides at a time. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  let names = 0;
  for (const name in a) {
    if (!Object.hasOwn(b, name)) return false;
    if (!isSame((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name])) return false;
    names++;
  }
  for (const _ in b) names--;
  return names === 0;
}

function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Fields in one order, so that equal values are equal text. */
function spell(value: unknown): string {
  if (isPlain(value)) {
    const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${spell(field)}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(spell).join(",")}]`;
  return JSON.stringify(value) ?? "";
}
