/** Small controls: a labelled field with hint and error, a segmented choice, a search box. */
import { type ReactNode, useId } from "react";

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  /** The service's message about this field. */
  readonly mistake?: string | undefined;
  /** The service's warning: valid, but suspicious. */
  readonly warning?: string | undefined;
  /** Receives the ids that associate the control with label and messages. */
  readonly children: (control: {
    id: string;
    "aria-describedby": string | undefined;
    "aria-invalid": boolean;
  }) => ReactNode;
}

export function Field({ label, hint, mistake, warning, children }: FieldProps) {
  const id = useId();
  const described = [
    hint !== undefined && `${id}-hint`,
    warning !== undefined && `${id}-warning`,
    mistake !== undefined && `${id}-mistake`,
  ].filter(Boolean);
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        "aria-describedby": described.length === 0 ? undefined : described.join(" "),
        "aria-invalid": mistake !== undefined,
      })}
      {mistake !== undefined && (
        <span className="mistake" id={`${id}-mistake`}>
          {mistake}
        </span>
      )}
      {warning !== undefined && (
        <span className="warning" id={`${id}-warning`}>
          {warning}
        </span>
      )}
      {hint !== undefined && (
        <span className="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  );
}

export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: readonly { readonly value: T; readonly label: string }[];
  onChange: (value: T) => void;
}) {
  const name = useId();
  return (
    <fieldset className="choice">
      <legend className="unseen">{label}</legend>
      {options.map((option) => (
        <label key={option.value}>
          <input type="radio" name={name} checked={option.value === value} onChange={() => onChange(option.value)} />
          {option.label}
        </label>
      ))}
    </fieldset>
  );
}

export function Search({
  label,
  value,
  placeholder,
  onChange,
}: {
  label: string;
  value: string;
  placeholder?: string;
  onChange: (value: string) => void;
}) {
  return (
    <input
      type="search"
      className="input search"
      aria-label={label}
      placeholder={placeholder ?? label}
      value={value}
      maxLength={200}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
