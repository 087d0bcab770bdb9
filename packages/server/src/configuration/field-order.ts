/**
 * The order in which a rule's fields are written: that of the rule table, whatever order they came in. So two documents that
 * mean the same are the same text, and a file under version control changes only where the rule changed.
 */
import { type Rule, ruleJsonSchema } from "sluice";

interface SchemaPart {
  readonly properties?: Readonly<Record<string, SchemaPart>>;
  readonly items?: SchemaPart;
  readonly propertyNames?: unknown;
}

let ruleSchema: SchemaPart | undefined;

/** A copy with the fields in order. A match keeps its author's order: its names are attributes, not fields. */
export function inFieldOrder(rule: Rule): Rule {
  return ordered(rule, schema()) as Rule;
}

type Override = NonNullable<Rule["overrides"]>[number];

export function overrideInFieldOrder(override: Override): Override {
  return ordered(override, schema().properties?.overrides?.items) as Override;
}

function schema(): SchemaPart {
  ruleSchema ??= ruleJsonSchema() as SchemaPart;
  return ruleSchema;
}

function ordered(value: unknown, schema: SchemaPart | undefined): unknown {
  if (schema === undefined || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value))
    return schema.items === undefined ? value : value.map((item) => ordered(item, schema.items));
  if (schema.properties === undefined || schema.propertyNames !== undefined) return value;
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(schema.properties)) {
    const field = (value as Record<string, unknown>)[name];
    if (field !== undefined) copy[name] = ordered(field, schema.properties[name]);
  }
  return copy;
}
