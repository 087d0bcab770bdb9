/** A diff as people read it: one line a rule, one a field. Plain text; the command line adds colour by each line's first character. */
import type { RuleChange, RuleDiff } from "./rule-diff.js";

const marks = { added: "+", removed: "-", changed: "~" } as const;
const LONGEST_VALUE = 200;

export function diffText(diff: RuleDiff): string {
  const lines = diff.changes.flatMap(linesOf);
  const untold = diff.added + diff.removed + diff.changed - diff.changes.length;
  if (untold > 0) lines.push(`  ... and ${untold} more rules`);
  if (diff.reordered) lines.push("~ the order of the rules");
  return [...lines, summaryOf(diff)].join("\n");
}

export function summaryOf({ added, removed, changed, reordered }: RuleDiff): string {
  const parts = [
    ...(added > 0 ? [`${added} added`] : []),
    ...(removed > 0 ? [`${removed} removed`] : []),
    ...(changed > 0 ? [`${changed} changed`] : []),
    ...(reordered ? ["reordered"] : []),
  ];
  return parts.length === 0 ? "no difference" : parts.join(", ");
}

function linesOf({ rule, change, fields = [], more }: RuleChange): string[] {
  return [
    `${marks[change]} ${rule}`,
    ...fields.map(({ path, from, to }) => `    ${path}: ${shown(from)} -> ${shown(to)}`),
    ...(more === undefined ? [] : [`    ... and ${more} more fields`]),
  ];
}

function shown(value: unknown): string {
  if (value === undefined) return "(absent)";
  const text = JSON.stringify(value);
  return text.length <= LONGEST_VALUE ? text : `${text.slice(0, LONGEST_VALUE - 1)}…`;
}
