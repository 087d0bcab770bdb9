/** Tags next to a rule's name: its mode and optional parts; and the name as a table cell. */
import { Link } from "wouter";
import type { Rule } from "../api/shapes.js";
import { count } from "./format.js";

export function RuleTags({ rule }: { rule: Rule }) {
  return (
    <>
      {rule.mode === "shadow" && <span className="tag warn">shadow</span>}
      {rule.mode === "off" && <span className="tag">off</span>}
      {rule.candidate !== undefined && <span className="tag candidate">candidate</span>}
      {rule.variants !== undefined && <span className="tag accent">{rule.variants.length} variants</span>}
      {rule.overrides !== undefined && (
        <span className="tag">
          {rule.overrides.length === 1 ? "1 override" : `${count(rule.overrides.length)} overrides`}
        </span>
      )}
    </>
  );
}

/** The first cell of a rule's row: its name, as a link to its page. */
export function RuleCell({ rule, mode }: { rule: string; mode: string }) {
  return (
    <td>
      <Link href={`/rules/${rule}`} className="mono strong">
        {rule}
      </Link>{" "}
      {mode === "shadow" && <span className="tag warn">shadow</span>}
    </td>
  );
}
