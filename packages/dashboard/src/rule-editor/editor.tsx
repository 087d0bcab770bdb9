/**
 * Form and YAML side by side, one draft behind both. Typing in either changes the other; the service judges the draft a moment later, and its
 * messages stand at the fields and, with their line, under the text. Saving shows the difference first. What is not saved is kept in the tab.
 */
import { useCallback, useEffect, useMemo, useState } from "react";
import { Field } from "../components/controls.js";
import { Dialog } from "../components/dialog.js";
import { clockTime } from "../components/format.js";
import { Notice, Panel, ProblemNotice } from "../components/panel.js";
import { releaseGuard, useLeaveGuard } from "../shell/leave-guard.js";
import { useSession } from "../shell/session.js";
import { ChangeDialog } from "./change-dialog.js";
import type { Draft } from "./draft.js";
import { type Editing, EditingProvider } from "./editing.js";
import { forgetDraft, keepDraft, readDraft } from "./kept-draft.js";
import { RuleForm } from "./rule-form.js";
import { useValidation } from "./use-validation.js";
import { lineOf, parseYaml, yamlOf } from "./yaml-text.js";

interface EditorProps {
  /** What the draft is kept under: the rule's id, "" for a new one. */
  readonly keptAs: string;
  readonly draft: Draft;
  readonly isNew: boolean;
  /** The version that the draft was taken from. */
  readonly base: number;
  /** For a new rule: ids that are taken. */
  readonly taken: ReadonlySet<string>;
  readonly onSaved: (id: string, version: number) => void;
}

export function Editor({ keptAs, draft: given, isNew, base: givenBase, taken, onSaved }: EditorProps) {
  const { name: by } = useSession();
  // Once, when the editor opens: afterwards what is kept follows what is typed.
  const [kept, setKept] = useState(() => readDraft(keptAs, by));
  const [start] = useState(() => (kept === undefined ? undefined : parseYaml(kept.text)));
  const [draft, setDraft] = useState(start !== undefined && "draft" in start ? start.draft : given);
  const [text, setText] = useState(() => kept?.text ?? yamlOf(given));
  const [textError, setTextError] = useState(start !== undefined && "error" in start ? start.error : undefined);
  const [isSaving, setIsSaving] = useState(false);
  const [leave, setLeave] = useState<() => void>();
  const base = kept?.base ?? givenBase;
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
  const isDirty = useMemo(() => text !== yamlOf(given), [text, given]);
  useLeaveGuard(
    isDirty,
    useCallback((go) => setLeave(() => go), []),
  );
  useEffect(() => {
    if (isDirty) keepDraft(keptAs, { text, base, by, atMs: Date.now() });
    else forgetDraft(keptAs);
  }, [isDirty, keptAs, text, base, by]);
  const discard = (): void => {
    setKept(undefined);
    setDraft(given);
    setText(yamlOf(given));
    setTextError(undefined);
    forgetDraft(keptAs);
  };

  const editing: Editing = {
    draft,
    mistakes,
    warnings: validation.warnings,
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
      {kept !== undefined && isDirty && (
        <Notice tone="warn" title={`Your unsaved changes of ${clockTime(kept.atMs)} are here again.`}>
          <button type="button" className="button small" onClick={discard}>
            Discard them
          </button>
        </Notice>
      )}
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
            warnings={validation.warnings.map((one) => ({ ...one, line: lineOf(text, one.path) }))}
            isPending={validation.isPending}
            error={validation.error}
          />
          <div className="buttons">
            <button type="button" className="button main" disabled={!canSave} onClick={() => setIsSaving(true)}>
              {isNew ? "Review and create" : "Review and save"}
            </button>
            <button type="button" className="button" disabled={!isDirty} onClick={discard}>
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
            forgetDraft(keptAs);
            releaseGuard();
            onSaved(id, version);
          }}
        >
          {isNew && <pre className="changes new-rule">{yamlOf(draft)}</pre>}
        </ChangeDialog>
      )}
      {leave !== undefined && (
        <Dialog
          title="Leave with unsaved changes?"
          onClose={() => setLeave(undefined)}
          cancel="Stay"
          onSubmit={leave}
          footer={
            <>
              <button
                type="button"
                className="button bad"
                onClick={() => {
                  discard();
                  leave();
                }}
              >
                Discard and leave
              </button>
              <button type="submit" className="button main">
                Keep and leave
              </button>
            </>
          }
        >
          <p>
            What you keep stays in this tab until you save or discard it. It is here when you come back to this page.
          </p>
        </Dialog>
      )}
    </Panel>
  );
}

interface Remark {
  readonly path: string;
  readonly message: string;
  readonly line: number | undefined;
}

function Remarks({ of }: { of: readonly Remark[] }) {
  return (
    <ul>
      {of.map(({ path, message, line }) => (
        <li key={`${path} ${message}`}>
          {line !== undefined && `line ${line}: `}
          {path !== "" && <code>{path}</code>} {message}
        </li>
      ))}
    </ul>
  );
}

function Judgement({
  mistakes,
  warnings,
  isPending,
  error,
}: {
  mistakes: readonly Remark[];
  warnings: readonly Remark[];
  isPending: boolean;
  error: Error | undefined;
}) {
  return (
    <div role="status" className="judgement">
      {error !== undefined ? (
        <ProblemNotice error={error} title="It cannot be checked" />
      ) : mistakes.length > 0 ? (
        <Notice tone="warn" title={mistakes.length === 1 ? "One mistake" : `${mistakes.length} mistakes`}>
          <Remarks of={mistakes} />
        </Notice>
      ) : warnings.length > 0 && !isPending ? (
        <Notice tone="warn" title="Valid, but most likely not what you mean">
          <Remarks of={warnings} />
        </Notice>
      ) : (
        <span className="soft small">{isPending ? "Checking …" : "No mistakes."}</span>
      )}
    </div>
  );
}
