/**
 * The editor's state: one draft, shown as a form and as YAML text. Changing either updates the other.
 * Unsaved changes are kept in the tab's session storage, and restored when the editor opens.
 */
import { useEffect, useMemo, useState } from "react";
import { useSession } from "../shell/session.js";
import type { Draft } from "./draft.js";
import { forgetDraft, type KeptDraft, keepDraft, readDraft } from "./draft-storage.js";
import { parseYaml, yamlOf } from "./yaml-text.js";

interface DraftState {
  readonly draft: Draft;
  readonly text: string;
  /** Why the text does not parse; the draft is then the last one that did. */
  readonly textError: string | undefined;
  readonly isDirty: boolean;
  /** The version that the draft is based on. */
  readonly base: number;
  /** Unsaved changes found when the editor opened. */
  readonly kept: KeptDraft | undefined;
  setDraft(draft: Draft): void;
  setText(text: string): void;
  discard(): void;
}

export function useDraft({ keptAs, given, base }: { keptAs: string; given: Draft; base: number }): DraftState {
  const { name: by } = useSession();
  // Read once, when the editor opens; from then on the storage follows the text.
  const [kept, setKept] = useState(() => readDraft(keptAs, by));
  const [start] = useState(() => (kept === undefined ? undefined : parseYaml(kept.text)));
  const [draft, setDraft] = useState(start !== undefined && "draft" in start ? start.draft : given);
  const [text, setText] = useState(() => kept?.text ?? yamlOf(given));
  const [textError, setTextError] = useState(start !== undefined && "error" in start ? start.error : undefined);
  const isDirty = useMemo(() => text !== yamlOf(given), [text, given]);
  const version = kept?.base ?? base;
  useEffect(() => {
    if (isDirty) keepDraft(keptAs, { text, base: version, by, atMs: Date.now() });
    else forgetDraft(keptAs);
  }, [isDirty, keptAs, text, version, by]);
  const become = (next: Draft): void => {
    setDraft(next);
    setText(yamlOf(next));
    setTextError(undefined);
  };
  return {
    draft,
    text,
    textError,
    isDirty,
    base: version,
    kept,
    setDraft: become,
    setText(next) {
      setText(next);
      const parsed = parseYaml(next);
      if ("draft" in parsed) setDraft(parsed.draft);
      setTextError("error" in parsed ? parsed.error : undefined);
    },
    discard() {
      setKept(undefined);
      become(given);
      forgetDraft(keptAs);
    },
  };
}
