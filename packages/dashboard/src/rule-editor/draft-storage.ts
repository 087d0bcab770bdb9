/**
 * Drafts that were not saved yet, kept in this tab: a session that ends, a reload or a click elsewhere loses nothing. Each belongs to the person
 * who wrote it, and goes when it is saved or discarded, or the tab is closed. Where the browser keeps nothing, drafts live as long as their page.
 */
export interface KeptDraft {
  /** The YAML, also where it cannot be read yet. */
  readonly text: string;
  /** The version that it was made from. */
  readonly base: number;
  readonly by: string;
  readonly atMs: number;
}

/** A rule's id; "" for a new rule. */
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
    // The browser's store is full or closed: the page itself still warns before it is left.
  }
}

export function forgetDraft(rule: string): void {
  try {
    sessionStorage.removeItem(spell(rule));
  } catch {
    // Nothing was kept.
  }
}
