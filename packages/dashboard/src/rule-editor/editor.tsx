/**
 * Form and YAML side by side, one draft behind both. Typing in either changes the other; the service judges the draft a moment later, and its
 * messages stand at the fields and, with their line, under the text. Saving shows the difference first.
 */
import { useEffect, useMemo, useState } from "react";
import { Field } from "../parts/controls.js";
import { Notice, Panel, ProblemNotice } from "../parts/panel.js";
import { ChangeDialog } from "./change-dialog.js";
import type { Draft } from "./draft.js";
import { type Editing, EditingProvider } from "./editing.js";
import { RuleForm } from "./rule-form.js";
import { useValidation } from "./use-validation.js";
import { lineOf, parseYaml, yamlOf } from "./yaml-text.js";

interface EditorProps {
  readonly draft: Draft;
  readonly isNew: boolean;
  /** The version that the draft was taken from. */
  readonly base: number;
  /** For a new rule: ids that are taken. */
  readonly taken: ReadonlySet<string>;
  readonly onSaved: (id: string, version: number) => void;
}

export function Editor({ draft: given, isNew, base, taken, onSaved }: EditorProps) {
  const [draft, setDraft] = useState(given);
  const [text, setText] = useState(() => yamlOf(given));
  const [textError, setTextError] = useState<string>();
  const [isSaving, setIsSaving] = useState(false);
  const validation = useValidation(draft, true);
  const id = String(draft.id ?? "");
  const isTaken = isNew && taken.has(id);
  const isRenamed = !isNew && draft.id !== given.id;
  const mistakes = useMemo(() => {
    const own = isTaken
      ? [{ path: "id", message: "there is a rule of this id already" }]
      : isRenamed
        ? [{ path: "id", message: `a rule keeps its id: ${String(given.id)}` }]
        : [];
    return [...own, ...validation.mistakes];
  }, [isTaken, isRenamed, given.id, validation.mistakes]);
  const isDirty = draft !== given || textError !== undefined;
  useLeaveWarning(isDirty);

  const editing: Editing = {
    draft,
    mistakes,
    isNew,
    change(next) {
      setDraft(next);
      setText(yamlOf(next));
      setTextError(undefined);
    },
  };
  const type = (next: string): void => {
    setText(next);
    const parsed = parseYaml(next);
    if ("draft" in parsed) setDraft(parsed.draft);
    setTextError("error" in parsed ? parsed.error : undefined);
  };
  const canSave =
    isDirty && textError === undefined && mistakes.length === 0 && !validation.isPending && validation.hasChanges;
  return (
    <Panel title={isNew ? "The new rule" : "Edit"} about="Form and YAML are the same rule: change either.">
      <div className="editor">
        <EditingProvider value={editing}>
          <fieldset disabled={textError !== undefined} className="plain">
            <legend className="unseen">Form</legend>
            <RuleForm />
          </fieldset>
        </EditingProvider>
        <div className="yaml">
          <Field label="YAML" mistake={textError}>
            {(control) => (
              <textarea
                {...control}
                className="input mono"
                rows={Math.min(40, Math.max(16, text.split("\n").length + 1))}
                spellCheck={false}
                autoComplete="off"
                value={text}
                onChange={(event) => type(event.target.value)}
              />
            )}
          </Field>
          {textError !== undefined && <p className="soft small">The form follows when the text can be read again.</p>}
          <Judgement
            mistakes={mistakes.map((one) => ({ ...one, line: lineOf(text, one.path) }))}
            isPending={validation.isPending}
            error={validation.error}
          />
          <div className="buttons">
            <button type="button" className="button main" disabled={!canSave} onClick={() => setIsSaving(true)}>
              {isNew ? "Review and create" : "Review and save"}
            </button>
            <button
              type="button"
              className="button"
              disabled={!isDirty}
              onClick={() => {
                setDraft(given);
                setText(yamlOf(given));
                setTextError(undefined);
              }}
            >
              Undo all
            </button>
          </div>
        </div>
      </div>
      {isSaving && (
        <ChangeDialog
          title={isNew ? `Create ${id}` : `Save ${id}`}
          verb={isNew ? "Create rule" : "Save rule"}
          change={{ method: "PUT", path: `/rules/${encodeURIComponent(id)}`, body: draft, rule: id, base }}
          onClose={() => setIsSaving(false)}
          onDone={({ version }) => {
            setIsSaving(false);
            onSaved(id, version);
          }}
        >
          {isNew && <pre className="changes new-rule">{yamlOf(draft)}</pre>}
        </ChangeDialog>
      )}
    </Panel>
  );
}

function Judgement({
  mistakes,
  isPending,
  error,
}: {
  mistakes: readonly { readonly path: string; readonly message: string; readonly line: number | undefined }[];
  isPending: boolean;
  error: Error | undefined;
}) {
  return (
    <div role="status" className="judgement">
      {error !== undefined ? (
        <ProblemNotice error={error} title="It cannot be checked" />
      ) : mistakes.length > 0 ? (
        <Notice tone="warn" title={mistakes.length === 1 ? "One mistake" : `${mistakes.length} mistakes`}>
          <ul>
            {mistakes.map(({ path, message, line }) => (
              <li key={`${path} ${message}`}>
                {line !== undefined && `line ${line}: `}
                {path !== "" && <code>{path}</code>} {message}
              </li>
            ))}
          </ul>
        </Notice>
      ) : (
        <span className="soft small">{isPending ? "Checking …" : "No mistakes."}</span>
      )}
    </div>
  );
}

/** The browser asks before a page with unsaved changes is left. */
function useLeaveWarning(isDirty: boolean): void {
  useEffect(() => {
    if (!isDirty) return;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isDirty]);
}
