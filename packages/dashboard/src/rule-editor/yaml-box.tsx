/** The rule as YAML in a text area that grows with the text, up to a maximum. */
import { Field } from "../components/controls.js";

const LEAST_ROWS = 16;
const MOST_ROWS = 40;

interface YamlBoxProps {
  readonly text: string;
  readonly error: string | undefined;
  readonly onChange: (text: string) => void;
}

export function YamlBox({ text, error, onChange }: YamlBoxProps) {
  return (
    <>
      <Field label="YAML" mistake={error}>
        {(control) => (
          <textarea
            {...control}
            className="input mono"
            rows={Math.min(MOST_ROWS, Math.max(LEAST_ROWS, text.split("\n").length + 1))}
            spellCheck={false}
            autoComplete="off"
            value={text}
            onChange={(event) => onChange(event.target.value)}
          />
        )}
      </Field>
      {error !== undefined && <p className="soft small">The form follows when the text can be read again.</p>}
    </>
  );
}
