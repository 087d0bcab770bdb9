/**
 * Warns about a rule that needs attributes which no request had: it is valid, but would limit nothing. Pure.
 * Silent if this is uncertain: no traffic yet, or more names than are tracked.
 */
import type { Mistake, Rule } from "sluice";
import type { SeenNames } from "../monitoring/read-attributes.js";

const MOST_WARNINGS = 10;
const MOST_TOLD = 12;
const PLAIN = /^[\w.:/-]{1,64}$/;

export function unseenAttributes(rule: Rule, { names, isComplete }: SeenNames, region?: string): Mistake[] {
  if (!isComplete || names.size === 0) return [];
  const isSeen = (name: string): boolean => names.has(name) || (name === "region" && region !== undefined);
  // Clients choose these names: repeat only plain ones.
  const told = [...names]
    .filter((name) => PLAIN.test(name))
    .sort()
    .slice(0, MOST_TOLD)
    .join(", ");
  const had = `requests had ${told}${names.size > MOST_TOLD ? " and others" : ""}`;
  return namesIn(rule)
    .filter(({ name }) => !isSeen(name))
    .slice(0, MOST_WARNINGS)
    .map(({ path, name }) => ({
      path,
      message: `no request lately had the attribute ${JSON.stringify(name)}, so the rule applies to none: ${had}${hint(name, path)}`,
    }));
}

/** A rule matches only if all its key and match attributes are present. */
function namesIn({ key, match = {} }: Rule): { path: string; name: string }[] {
  return [
    ...key.map((name, i) => ({ path: `key[${i}]`, name })),
    ...Object.keys(match).map((name) => ({ path: `match.${name}`, name })),
  ];
}

function hint(name: string, path: string): string {
  return path.startsWith("key") && /[/*]/.test(name)
    ? `. To limit that path, put it under match: path: ${JSON.stringify(name)}`
    : "";
}
