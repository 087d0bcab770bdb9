/**
 * Form and YAML side by side, with one draft behind both. The service validates the draft shortly after the last keystroke (debounce); its
 * messages appear at the fields and, with line numbers, below the text. Saving shows the diff first.
 */
import { useCallback, useMemo, useState } from "react";
import type { Mistake } from "../api/shapes.js";
import { clockTime } from "../components/format.js";
import { Notice, Panel } from "../components/panel.js";
import { releaseGuard, useLeaveGuard } from "../shell/leave-guard.js";
import { ChangeDialog } from "./change-dialog.js";
import { type Draft, withValue } from "./draft.js";
import { forgetDraft } from "./draft-storage.js";
import { EditingProvider } from "./editing.js";
import { LeaveDialog } from "./leave-dialog.js";
import { RecentTraffic } from "./recent-traffic.js";
import { RuleForm } from "./rule-form.js";
import { Suggestions } from "./suggestions.js";
import { TryOnTraffic } from "./try-on-traffic.js";
import { useDraft } from "./use-draft.js";
import { useValidation } from "./use-validation.js";
import { ValidationResult } from "./validation-result.js";
import { YamlBox } from "./yaml-box.js";
import { lineOf, yamlOf } from "./yaml-text.js";

interface EditorProps {
  /** The draft's storage key: the rule's id, "" for a new one. */
  readonly keptAs: string;
  readonly draft: Draft;
  readonly isNew: boolean;
  /** The draft can be saved without further edits. */
  readonly isCopy?: boolean;
  /** The version that the draft is based on. */
  readonly base: number;
  /** For a new rule: existing ids. */
  readonly taken: ReadonlySet<string>;
  readonly onSaved: (id: string, version: number) => void;
}

export function Editor({ keptAs, draft: given, isNew, isCopy = false, base, taken, onSaved }: EditorProps) {
  const state = useDraft({ keptAs, given, base });
  const { draft, text, textError, isDirty, kept, discard } = state;
  const [isSaving, setIsSaving] = useState(false);
  const [leave, setLeave] = useState<() => void>();
  const validation = useValidation(draft);
  const id = String(draft.id ?? "");
  const idMistake = mistakeOfId({ id: draft.id, given: given.id, isNew, taken });
  const mistakes = useMemo(
    () => [...(idMistake === undefined ? [] : [{ path: "id", message: idMistake }]), ...validation.mistakes],
    [idMistake, validation.mistakes],
  );
  useLeaveGuard(
    isDirty,
    useCallback((go) => setLeave(() => go), []),
  );
  const withLine = (one: Mistake) => ({ ...one, line: lineOf(text, one.path) });
  const useAsCandidate = (limit: number) => state.setDraft(withValue(draft, ["candidate", "limit"], limit));
  const isValid = textError === undefined && mistakes.length === 0 && !validation.isPending;
  return (
    <>
      <Panel title={isNew ? "The new rule" : "Edit"} about="Form and YAML are the same rule: change either.">
        {kept !== undefined && isDirty && (
          <Notice tone="warn" title={`Your unsaved changes of ${clockTime(kept.atMs)} are here again.`}>
            <button type="button" className="button small" onClick={discard}>
              Discard them
            </button>
          </Notice>
        )}
        <div className="editor">
          <EditingProvider value={{ draft, mistakes, warnings: validation.warnings, isNew, change: state.setDraft }}>
            <fieldset disabled={textError !== undefined} className="plain">
              <legend className="unseen">Form</legend>
              <RuleForm />
            </fieldset>
          </EditingProvider>
          <div className="yaml">
            <YamlBox text={text} error={textError} onChange={state.setText} />
            <ValidationResult
              mistakes={mistakes.map(withLine)}
              warnings={validation.warnings.map(withLine)}
              isPending={validation.isPending}
              error={validation.error}
            />
            <div className="buttons">
              <button
                type="button"
                className="button main"
                disabled={!((isDirty || isCopy) && isValid && validation.hasChanges)}
                onClick={() => setIsSaving(true)}
              >
                {isNew ? "Review and create" : "Review and save"}
              </button>
              <button type="button" className="button" disabled={!isDirty} onClick={discard}>
                Undo all
              </button>
            </div>
          </div>
        </div>
        {isSaving && (
          <SaveDialog
            draft={draft}
            isNew={isNew}
            base={state.base}
            onClose={() => setIsSaving(false)}
            onDone={(version) => {
              setIsSaving(false);
              forgetDraft(keptAs);
              releaseGuard();
              onSaved(id, version);
            }}
          />
        )}
        {leave !== undefined && <LeaveDialog onStay={() => setLeave(undefined)} onLeave={leave} onDiscard={discard} />}
      </Panel>
      <TryOnTraffic draft={draft} isValid={isValid} />
      {!isNew && <Suggestions rule={id} onUse={useAsCandidate} />}
    </>
  );
}

interface IdToCheck {
  readonly id: unknown;
  readonly given: unknown;
  readonly isNew: boolean;
  readonly taken: ReadonlySet<string>;
}

/** The service would accept both: a new rule with an existing id replaces that rule, a renamed one becomes a second rule. */
function mistakeOfId({ id, given, isNew, taken }: IdToCheck): string | undefined {
  if (isNew) return taken.has(String(id ?? "")) ? "there is a rule of this id already" : undefined;
  return id === given ? undefined : `a rule keeps its id: ${String(given)}`;
}

interface SaveDialogProps {
  readonly draft: Draft;
  readonly isNew: boolean;
  readonly base: number;
  readonly onClose: () => void;
  readonly onDone: (version: number) => void;
}

function SaveDialog({ draft, isNew, base, onClose, onDone }: SaveDialogProps) {
  const id = String(draft.id ?? "");
  return (
    <ChangeDialog
      title={isNew ? `Create ${id}` : `Save ${id}`}
      verb={isNew ? "Create rule" : "Save rule"}
      change={{ method: "PUT", path: `/rules/${encodeURIComponent(id)}`, body: draft, rule: id, base }}
      onClose={onClose}
      onDone={({ version }) => onDone(version)}
    >
      {isNew && <pre className="changes new-rule">{yamlOf(draft)}</pre>}
      <RecentTraffic draft={draft} />
    </ChangeDialog>
  );
}
