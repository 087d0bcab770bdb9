/** The first cells of every key table: the key, as a link to its explanation, and its rule. */
import { AttributeList } from "../components/figures.js";
import { RowLink } from "../shell/row-link.js";
import { keyAddress } from "./key-address.js";

interface KeyCellsProps {
  /** Absent if they are so long that only their digest is stored. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly rule: string;
}

export function KeyCells({ attributes, rule }: KeyCellsProps) {
  return (
    <>
      <td>
        {attributes === undefined ? (
          <span className="soft">too long to show</span>
        ) : (
          <RowLink href={keyAddress(attributes)} className="key-link">
            <AttributeList attributes={attributes} />
          </RowLink>
        )}
      </td>
      <td data-label="Rule" className="rule-cell">
        <RowLink href={`/rules/${rule}`} className="mono">
          {rule}
        </RowLink>
      </td>
    </>
  );
}
