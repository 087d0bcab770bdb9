/**
 * Where rule documents enter: whatever was read from a file, a request body, a database or a caller.
 * Out: rules that can be compiled, as a copy that the caller cannot change any more; or every mistake of the document at once.
 * Nothing is repaired or guessed.
 */
import { type Mistake, SluiceError } from "../errors.js";
import { describeValue } from "./describe-value.js";
import { attributeName, isObject } from "./field-kinds.js";
import { type ByAttribute, type ObjectOf, ruleDocument, type Shape } from "./fields.js";
import { nearestName } from "./nearest-name.js";
import type { Rule } from "./rule.js";
import { inconsistencies } from "./rule-consistency.js";

/** `document`: `{rules: [...]}`, or the list alone. */
export function validateRules(document: unknown): { rules: Rule[] } | { mistakes: Mistake[] } {
  const mistakes: Mistake[] = [];
  const whole = Array.isArray(document) ? { rules: document } : document;
  walk(ruleDocument, whole, "", mistakes);
  const rules = isObject(whole) && Array.isArray(whole.rules) ? whole.rules : [];
  inconsistencies(rules, mistakes);
  return mistakes.length === 0 ? { rules: rules.map((rule) => detached(rule) as Rule) } : { mistakes };
}

/** The rules, or a SluiceError `invalid-rules` whose message lists every mistake, one a line. */
export function parseRules(document: unknown): Rule[] {
  const outcome = validateRules(document);
  if ("rules" in outcome) return outcome.rules;
  const { mistakes } = outcome;
  throw new SluiceError("invalid-rules", mistakes.map(({ path, message }) => `${path}: ${message}`).join("\n"), {
    mistakes,
  });
}

function walk(shape: Shape, value: unknown, path: string, mistakes: Mistake[]): void {
  switch (shape.shape) {
    case "leaf":
      if (!shape.accepts(value)) mistakes.push(unexpected(path, shape.expected, value));
      return;
    case "one-or-many":
      if (!Array.isArray(value)) walk(shape.item, value, path, mistakes);
      else if (value.length === 0) mistakes.push(unexpected(path, "at least one value", value));
      else walkItems(shape, value, path, mistakes);
      return;
    case "list":
      if (Array.isArray(value)) walkItems(shape, value, path, mistakes);
      else mistakes.push(unexpected(path, shape.expected, value));
      return;
    case "by-attribute":
      if (isObject(value)) walkAttributes(shape, value, path, mistakes);
      else mistakes.push(unexpected(path, shape.expected, value));
      return;
    case "object":
      if (isObject(value)) walkFields(shape, value, path, mistakes);
      else mistakes.push(unexpected(path || "document", shape.expected, value));
  }
}

function unexpected(path: string, expected: string, value: unknown): Mistake {
  return { path, message: `expected ${expected}, got ${describeValue(value)}` };
}

function walkItems(shape: { item: Shape; most: number }, items: unknown[], path: string, mistakes: Mistake[]): void {
  if (items.length > shape.most) {
    mistakes.push({ path, message: `expected at most ${shape.most}, got ${items.length}` });
    return;
  }
  for (let i = 0; i < items.length; i++) walk(shape.item, items[i], `${path}[${i}]`, mistakes);
}

function walkAttributes(shape: ByAttribute, value: Record<string, unknown>, path: string, mistakes: Mistake[]): void {
  const names = Object.keys(value);
  if (names.length < shape.least) mistakes.push(unexpected(path, shape.expected, value));
  if (names.length > shape.most) {
    mistakes.push({ path, message: `expected at most ${shape.most} attributes, got ${names.length}` });
    return;
  }
  for (const name of names) {
    const at = pathTo(path, name);
    if (attributeName.accepts(name)) walk(shape.special.get(name) ?? shape.value, value[name], at, mistakes);
    else mistakes.push(unexpected(at, attributeName.expected, name));
  }
}

function walkFields(shape: ObjectOf, value: Record<string, unknown>, path: string, mistakes: Mistake[]): void {
  for (const [name, field] of shape.fields) {
    // `undefined` is absent: callers in JavaScript write it where they leave a field out.
    const written = Object.hasOwn(value, name) ? value[name] : undefined;
    if (written !== undefined || field.required) walk(field.shape, written, pathTo(path, name), mistakes);
  }
  for (const name of Object.keys(value)) {
    if (shape.fields.has(name) || value[name] === undefined) continue;
    const nearest = nearestName(name, shape.fields.keys());
    const message =
      shape.refused?.get(name) ?? `unknown field${nearest === undefined ? "" : `, did you mean "${nearest}"?`}`;
    mistakes.push({ path: pathTo(path, name), message });
  }
}

function pathTo(path: string, name: string): string {
  if (!/^[A-Za-z_$][\w$-]{0,63}$/.test(name)) return `${path}[${describeValue(name)}]`;
  return path === "" ? name : `${path}.${name}`;
}

/** A deep copy of plain data. An own field named `__proto__` stays a field: assigned, it would become the prototype. */
function detached(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(detached);
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const copied = detached((value as Record<string, unknown>)[name]);
    if (copied === undefined) continue;
    if (name === "__proto__") {
      Object.defineProperty(copy, name, { value: copied, enumerable: true, configurable: true, writable: true });
    } else {
      copy[name] = copied;
    }
  }
  return copy;
}
