/** Full-text search over rules: every word must occur somewhere in the rule. Words are literal, not patterns. Pure. */
import type { Rule } from "../api/shapes.js";

export function matcher(search: string): (rule: Rule) => boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return () => true;
  return (rule) => {
    const text = textOf(rule);
    return words.every((word) => text.includes(word));
  };
}

/** Spelled once for each rule, not at every keystroke. */
const texts = new WeakMap<Rule, string>();

function textOf(rule: Rule): string {
  const known = texts.get(rule);
  if (known !== undefined) return known;
  // Overrides are left out: there may be thousands, and each names a key, not the rule.
  const { overrides: _, ...searched } = rule;
  const text = JSON.stringify(searched).toLowerCase();
  texts.set(rule, text);
  return text;
}
