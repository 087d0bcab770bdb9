/**
 * Unsaved drafts in the tab's session storage, so that an expired session, a reload or a stray click loses nothing. Each belongs to its
 * author, and is removed when it is saved or discarded, or the tab is closed. If the browser stores nothing, drafts live as long as their
 * page.
 */
export interface KeptDraft {
  /** The YAML, even if it does not parse yet. */
  readonly text: string;
  /** The version that it is based on. */
  readonly base: number;
  readonly by: string;
  readonly atMs: number;
}

/** By rule id; "" for a new rule. */
const spell = (rule: string): string => `sluice-draft:${rule}`;
const LONGEST = 500_000;

export function readDraft(rule: string, by: string): KeptDraft | undefined {
  try {
    const kept = JSON.parse(sessionStorage.getItem(spell(rule)) ?? "null") as KeptDraft | null;
    return kept !== null && kept.by === by && typeof kept.text === "string" ? kept : undefined;
  } catch {
    return undefined;
  }
}

export function keepDraft(rule: string, draft: KeptDraft): void {
  try {
    if (draft.text.length <= LONGEST) sessionStorage.setItem(spell(rule), JSON.stringify(draft));
  } catch {
    // The storage is full or disabled: the page itself still warns before it is left.
  }
}

export function forgetDraft(rule: string): void {
  try {
    sessionStorage.removeItem(spell(rule));
  } catch {
    // Nothing was stored.
  }
}
