/** A match as rows: an attribute and the values, one of which must match. */
import { useState } from "react";
import { useRowFocus } from "../components/row-focus.js";
import { type MatchRow, matchOf, matchRows, valueAt, withValue } from "./draft.js";
import { useEditing, useMistake, useWarning } from "./editing.js";
import { type BoxProps, spelledPath, stepsOf } from "./form-boxes.js";

export function MatchBox({ path, label, hint }: BoxProps) {
  const { draft, change } = useEditing();
  const mistake = useMistake(spelledPath(path));
  const warning = useWarning(spelledPath(path));
  const { list, focusNext } = useRowFocus<HTMLFieldSetElement>();
  const match = valueAt(draft, stepsOf(path));
  const [typed, setTyped] = useState<readonly MatchRow[]>(() => matchRows(match));
  // Rows without a name are not part of the draft yet, but must not vanish during typing.
  const isSame = JSON.stringify(matchOf(typed) ?? {}) === JSON.stringify(matchOf(matchRows(match)) ?? {});
  const rows = isSame ? typed : matchRows(match);
  const put = (next: readonly MatchRow[]): void => {
    setTyped(next);
    change(withValue(draft, stepsOf(path), matchOf(next)));
  };
  const edit = (at: number, part: Partial<MatchRow>): void =>
    put(rows.map((row, i) => (i === at ? { ...row, ...part } : row)));
  return (
    <fieldset className="field match" ref={list}>
      <legend>{label}</legend>
      {rows.length === 0 && <span className="soft">Every request.</span>}
      {rows.map((row, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other name, and are only added at the end or taken away.
        <div className="attribute-row" key={at}>
          <input
            className="input mono"
            aria-label={`${label}: attribute ${at + 1}`}
            placeholder="attribute"
            value={row.name}
            onChange={(event) => edit(at, { name: event.target.value })}
          />
          <span aria-hidden="true">=</span>
          <input
            className="input mono"
            aria-label={`${label}: value ${at + 1}`}
            aria-invalid={mistake !== undefined}
            placeholder="value | another"
            value={row.values}
            onChange={(event) => edit(at, { values: event.target.value })}
          />
          <button
            type="button"
            className="button small"
            aria-label={`${label}: remove attribute ${at + 1}`}
            onClick={() => {
              put(rows.filter((_, i) => i !== at));
              focusNext(at === 0 ? 0 : at - 1);
            }}
          >
            Remove
          </button>
        </div>
      ))}
      <div>
        <button
          type="button"
          className="button small"
          data-adds=""
          onClick={() => {
            put([...rows, { name: "", values: "" }]);
            focusNext(rows.length);
          }}
        >
          Add attribute
        </button>
      </div>
      {mistake !== undefined && <span className="mistake">{mistake}</span>}
      {warning !== undefined && <span className="warning">{warning}</span>}
      {hint !== undefined && <span className="hint">{hint}</span>}
    </fieldset>
  );
}
