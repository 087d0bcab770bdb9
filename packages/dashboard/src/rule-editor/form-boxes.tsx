/** Inputs of the rule form: each shows and edits one field of the draft, with the service's message about it. */
import { useState } from "react";
import { Field } from "../components/controls.js";
import { textOrNothing, valueAt, withValue } from "./draft.js";
import { useEditing, useMistake, useWarning } from "./editing.js";

type Path = string | readonly (string | number)[];

export interface BoxProps {
  readonly path: Path;
  readonly label: string;
  readonly hint?: string;
}

export const stepsOf = (path: Path): readonly (string | number)[] => (typeof path === "string" ? [path] : path);

/** In the service's notation: `overrides[1].limit`. */
export function spelledPath(path: Path): string {
  return stepsOf(path).reduce<string>(
    (spelled, step) =>
      typeof step === "number" ? `${spelled}[${step}]` : spelled === "" ? step : `${spelled}.${step}`,
    "",
  );
}

export function TextBox({
  path,
  label,
  hint,
  isMono = false,
  read = textOrNothing,
  inputMode = "text",
  placeholder,
}: BoxProps & {
  placeholder?: string;
  isMono?: boolean;
  read?: (text: string) => unknown;
  inputMode?: "text" | "numeric";
}) {
  const { draft, change } = useEditing();
  const value = valueAt(draft, stepsOf(path));
  const mistake = useMistake(spelledPath(path));
  return (
    <Field label={label} mistake={mistake} {...(hint !== undefined && { hint })}>
      {(control) => (
        <input
          {...control}
          className={`input ${isMono ? "mono" : ""}`}
          inputMode={inputMode}
          placeholder={placeholder}
          autoComplete="off"
          spellCheck={!isMono}
          value={typeof value === "string" || typeof value === "number" ? value : ""}
          onChange={(event) => change(withValue(draft, stepsOf(path), read(event.target.value)))}
        />
      )}
    </Field>
  );
}

/** Keeps the typed text while it is equivalent to the draft: "user, " must not become "user" during typing. */
interface ListBoxProps extends BoxProps {
  readonly read: (text: string) => string[];
  /** An empty list removes the field. */
  readonly isOptional?: boolean;
}

export function ListBox({ path, label, hint, read, isOptional = false }: ListBoxProps) {
  const { draft, change } = useEditing();
  const value = valueAt(draft, stepsOf(path));
  const list = Array.isArray(value) ? value.map(String) : [];
  const [typed, setTyped] = useState(list.join(", "));
  const shown = JSON.stringify(read(typed)) === JSON.stringify(list) ? typed : list.join(", ");
  const mistake = useMistake(spelledPath(path));
  const warning = useWarning(spelledPath(path));
  return (
    <Field label={label} mistake={mistake} warning={warning} {...(hint !== undefined && { hint })}>
      {(control) => (
        <input
          {...control}
          className="input mono"
          autoComplete="off"
          spellCheck={false}
          value={shown}
          onChange={(event) => {
            setTyped(event.target.value);
            const items = read(event.target.value);
            change(withValue(draft, stepsOf(path), isOptional && items.length === 0 ? undefined : items));
          }}
        />
      )}
    </Field>
  );
}

export function SelectBox({
  path,
  label,
  hint,
  options,
  onChange,
}: BoxProps & {
  options: readonly { readonly value: string; readonly label: string }[];
  onChange?: (value: string) => void;
}) {
  const { draft, change } = useEditing();
  const value = valueAt(draft, stepsOf(path));
  const shown = typeof value === "string" ? value : "";
  const mistake = useMistake(spelledPath(path));
  // A value that is not an option (an explicit default, a mistake from the YAML) is shown as it is.
  const all = options.some((option) => option.value === shown) ? options : [{ value: shown, label: shown }, ...options];
  return (
    <Field label={label} mistake={mistake} {...(hint !== undefined && { hint })}>
      {(control) => (
        <select
          {...control}
          className="input"
          value={shown}
          onChange={(event) =>
            onChange === undefined
              ? change(withValue(draft, stepsOf(path), textOrNothing(event.target.value)))
              : onChange(event.target.value)
          }
        >
          {all.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
