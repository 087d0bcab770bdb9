/** Full-text search over rules: every word must occur somewhere in the rule. Words are literal, not patterns. Pure. */
import type { Rule } from "../api/shapes.js";

export function matcher(search: string): (rule: Rule) => boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return () => true;
  // Overrides are left out: there may be thousands, and each names a key, not the rule.
  return ({ overrides: _, ...rule }) => {
    const text = JSON.stringify(rule).toLowerCase();
    return words.every((word) => text.includes(word));
  };
}
