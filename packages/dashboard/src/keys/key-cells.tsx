/** The first cells of every key table: the key, as a link to its explanation, and its rule. */
import { AttributeList } from "../components/figures.js";
import { RowLink } from "../shell/row-link.js";
import { keyAddress } from "./key-address.js";

interface KeyCellsProps {
  /** Absent if they are so long that only their digest is stored. */
  readonly attributes?: Readonly<Record<string, string>>;
  /** Set if the values are truncated: they lead to no key. */
  readonly digest?: string;
  readonly rule: string;
}

export function KeyCells({ attributes, digest, rule }: KeyCellsProps) {
  return (
    <>
      <td>
        {attributes === undefined ? (
          <span className="soft">too long to show</span>
        ) : (
          <KeyLink attributes={attributes} digest={digest} />
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

/** A key whose values are truncated is not linked: they would be another key. */
export function KeyLink({ attributes, digest }: Required<Pick<KeyCellsProps, "attributes">> & DigestProps) {
  if (digest !== undefined) {
    return (
      <span title="Too long to be kept whole: enter the whole value under Explain a key.">
        <AttributeList attributes={attributes} />
      </span>
    );
  }
  return (
    <RowLink href={keyAddress(attributes)} className="key-link">
      <AttributeList attributes={attributes} />
    </RowLink>
  );
}

interface DigestProps {
  readonly digest: string | undefined;
}
