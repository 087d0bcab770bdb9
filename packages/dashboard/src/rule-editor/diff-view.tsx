/** The service's diff, rule by rule and field by field. */
import type { RuleDiff } from "../api/shapes.js";
import { count, fieldValue } from "../components/format.js";

const MOST_RULES = 50;
const words = { added: "is added", removed: "is removed", changed: "changes" } as const;

export function DiffView({ diff }: { diff: RuleDiff }) {
  const hidden = diff.added + diff.removed + diff.changed - Math.min(MOST_RULES, diff.changes.length);
  return (
    <section className="changes" aria-label="Changes">
      <table>
        <tbody>
          {diff.changes.slice(0, MOST_RULES).map((change) => [
            <tr key={change.rule}>
              <th scope="rowgroup" colSpan={3}>
                {change.change === "removed" ? <del>{change.rule}</del> : change.rule} {words[change.change]}
              </th>
            </tr>,
            ...(change.fields ?? []).map((field) => (
              <tr key={`${change.rule} ${field.path}`}>
                <td>{field.path}</td>
                <td>
                  {field.from === undefined ? <span className="soft">none</span> : <del>{fieldValue(field.from)}</del>}
                </td>
                <td>
                  {field.to === undefined ? <span className="soft">none</span> : <ins>{fieldValue(field.to)}</ins>}
                </td>
              </tr>
            )),
            change.more !== undefined && (
              <tr key={`${change.rule} more`}>
                <td colSpan={3}>and {count(change.more)} more fields</td>
              </tr>
            ),
          ])}
          {diff.reordered && (
            <tr>
              <td colSpan={3}>The order of the rules changes.</td>
            </tr>
          )}
          {hidden > 0 && (
            <tr>
              <td colSpan={3}>and {count(hidden)} more rules</td>
            </tr>
          )}
        </tbody>
      </table>
    </section>
  );
}
