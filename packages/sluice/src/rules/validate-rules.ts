/**
 * Where rule documents enter, whether read from a file, a request body, a database or passed by a caller. Out: rules that can be compiled,
 * as a copy that the caller can no longer change; or the mistakes of the document, all at once, up to a bound. Nothing is repaired or
 * guessed. It validates a copy, because a caller may change the document while it is read in slices.
 */
import { type Mistake, SluiceError } from "../errors.js";
import { runAtOnce, runInSlices, type Sliced } from "../time-slices.js";
import { describeValue } from "./describe-value.js";
import { attributeName, isObject } from "./field-kinds.js";
import { type ByAttribute, type ListOf, type ObjectOf, ruleDocument, type Shape } from "./fields.js";
import { Findings } from "./findings.js";
import { nearestName } from "./nearest-name.js";
import type { Rule } from "./rule.js";
import { findingInconsistencies } from "./rule-consistency.js";

type Outcome = { rules: Rule[] } | { mistakes: Mistake[] };

/** `document`: `{rules: [...]}`, or the list alone. */
export function validateRules(document: unknown): Outcome {
  return runAtOnce(validatingRules(document));
}

/** The rules, or a SluiceError `invalid-rules` whose message lists the mistakes, one per line. */
export function parseRules(document: unknown): Rule[] {
  return runAtOnce(parsingRules(document));
}

/** The same for a large document, without blocking other work: yields to the event loop every few milliseconds. */
export function parseRulesInSlices(document: unknown): Promise<Rule[]> {
  return runInSlices(parsingRules(document));
}

export function* parsingRules(document: unknown): Sliced<Rule[]> {
  const outcome = yield* validatingRules(document);
  if ("rules" in outcome) return outcome.rules;
  throw invalidRules(outcome.mistakes);
}

/** The error that lists a document's mistakes, one per line. */
export function invalidRules(mistakes: readonly Mistake[]): SluiceError {
  const lines = mistakes.map(({ path, message }) => `${path}: ${message}`);
  return new SluiceError("invalid-rules", lines.join("\n"), { mistakes });
}

function* validatingRules(document: unknown): Sliced<Outcome> {
  const findings = new Findings();
  const written = Array.isArray(document) ? { rules: document } : document;
  const whole = yield* copying(ruleDocument, written, "", findings);
  const rules = isObject(whole) && Array.isArray(whole.rules) ? whole.rules : [];
  yield* findingInconsistencies(rules, findings);
  return findings.count === 0 ? { rules } : { mistakes: findings.list() };
}

/** Copies a value including its long lists, item by item. */
function* copying(shape: Shape, value: unknown, path: string, findings: Findings): Sliced<unknown> {
  const copy = copyOf(shape, value, path, findings);
  if (shape.shape !== "object" || !isObject(copy)) return copy;
  for (const [name, list] of shape.longLists) {
    const items = copy[name];
    if (Array.isArray(items)) copy[name] = yield* copyingItems(list, items, pathTo(path, name), findings);
  }
  return copy;
}

function* copyingItems(shape: ListOf, items: unknown[], path: string, findings: Findings): Sliced<unknown[]> {
  if (hasTooMany(shape, items, path, findings)) return items;
  const { item } = shape;
  const holdsLists = item.shape === "object" && item.longLists.size > 0;
  const copy = [...items];
  for (let i = 0; i < copy.length; i++) {
    const at = `${path}[${i}]`;
    copy[i] = holdsLists ? yield* copying(item, copy[i], at, findings) : copyOf(item, copy[i], at, findings);
    if (findings.stride.isOver()) yield;
  }
  return copy;
}

/** Copies a value and records what is wrong with it; invalid parts are left as they are. Long lists are left to `copying`. */
function copyOf(shape: Shape, value: unknown, path: string, findings: Findings): unknown {
  switch (shape.shape) {
    case "leaf": {
      const copy = isObject(value) ? { ...value } : value;
      return shape.accepts(copy) ? copy : refused(shape.expected, value, path, findings);
    }
    case "one-or-many":
      if (!Array.isArray(value)) return copyOf(shape.item, value, path, findings);
      if (value.length === 0) return refused("at least one value", value, path, findings);
      return copyItems(shape, value, path, findings);
    case "list":
      if (!Array.isArray(value)) return refused(shape.expected, value, path, findings);
      return shape.isLong ? value : copyItems(shape, value, path, findings);
    case "by-attribute":
      if (!isObject(value)) return refused(shape.expected, value, path, findings);
      return copyAttributes(shape, value, path, findings);
    case "object":
      if (!isObject(value)) return refused(shape.expected, value, path || "document", findings);
      return copyFields(shape, value, path, findings);
  }
}

function refused(expected: string, value: unknown, path: string, findings: Findings): unknown {
  findings.add(path, () => `expected ${expected}, got ${describeValue(value)}`);
  return value;
}

function hasTooMany({ most }: { most: number }, items: unknown[], path: string, findings: Findings): boolean {
  if (items.length <= most) return false;
  findings.add(path, `expected at most ${most}, got ${items.length}`);
  return true;
}

/** More than any object has, by a wide margin: an object with more is not inspected. */
const MOST_FIELDS = 100;

function copyItems(shape: { item: Shape; most: number }, items: unknown[], path: string, findings: Findings): unknown {
  if (hasTooMany(shape, items, path, findings)) return items;
  findings.stride.add(items.length);
  const copy = [...items];
  for (let i = 0; i < copy.length; i++) copy[i] = copyOf(shape.item, copy[i], `${path}[${i}]`, findings);
  return copy;
}

function copyAttributes(shape: ByAttribute, value: Record<string, unknown>, path: string, findings: Findings): unknown {
  const names = Object.keys(value);
  if (names.length < shape.least) refused(shape.expected, value, path, findings);
  if (names.length > shape.most) {
    findings.add(
      path,
      `expected at most ${shape.most} ${shape.name === attributeName ? "attributes" : "names"}, got ${names.length}`,
    );
    return value;
  }
  const copy = { ...value };
  for (const name of names) {
    const at = pathTo(path, name);
    if (shape.name.accepts(name)) copy[name] = copyOf(shape.special.get(name) ?? shape.value, copy[name], at, findings);
    else refused(shape.name.expected, name, at, findings);
  }
  return copy;
}

function copyFields(shape: ObjectOf, value: Record<string, unknown>, path: string, findings: Findings): unknown {
  const fieldCount = Object.keys(value).length;
  if (fieldCount > MOST_FIELDS) {
    findings.add(path || "document", `expected at most ${MOST_FIELDS} fields, got ${fieldCount}`);
    return undefined;
  }
  const copy = withoutUndefined({ ...value });
  for (const [name, field] of shape.fields) {
    const isWritten = Object.hasOwn(copy, name);
    if (isWritten) copy[name] = copyOf(field.shape, copy[name], pathTo(path, name), findings);
    else if (field.required) copyOf(field.shape, undefined, pathTo(path, name), findings);
  }
  for (const name of Object.keys(copy)) {
    if (shape.fields.has(name)) continue;
    findings.add(pathTo(path, name), () => {
      const nearest = nearestName(name, shape.fields.keys());
      return shape.refused?.get(name) ?? `unknown field${nearest === undefined ? "" : `, did you mean "${nearest}"?`}`;
    });
  }
  return copy;
}

/** `undefined` counts as absent: JavaScript callers write it for a field they leave out. */
function withoutUndefined(fields: Record<string, unknown>): Record<string, unknown> {
  for (const name of Object.keys(fields)) {
    if (fields[name] !== undefined) continue;
    return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  }
  return fields;
}

function pathTo(path: string, name: string): string {
  if (!/^[A-Za-z_$][\w$-]{0,63}$/.test(name)) return `${path}[${describeValue(name)}]`;
  return path === "" ? name : `${path}.${name}`;
}
