/** The context of the form's parts: the draft, its setter, and the service's messages per field. */
import { createContext, useContext } from "react";
import type { Mistake } from "../api/shapes.js";
import type { Draft } from "./draft.js";

interface Editing {
  readonly draft: Draft;
  readonly mistakes: readonly Mistake[];
  readonly warnings: readonly Mistake[];
  readonly isNew: boolean;
  change(draft: Draft): void;
}

const EditingContext = createContext<Editing | undefined>(undefined);
export const EditingProvider = EditingContext.Provider;

export function useEditing(): Editing {
  return useContext(EditingContext)!;
}

/** The messages of a field and its children. */
export function useMistake(path: string): string | undefined {
  return textAt(useEditing().mistakes, path);
}

export function useWarning(path: string): string | undefined {
  const own = useEditing().warnings.filter((one) => one.path.startsWith(path));
  return own.length === 0 ? undefined : own.map(({ message }) => message).join("; ");
}

function textAt(remarks: readonly Mistake[], path: string): string | undefined {
  const own = remarks.filter(
    (one) => one.path === path || one.path.startsWith(`${path}.`) || one.path.startsWith(`${path}[`),
  );
  if (own.length === 0) return undefined;
  return own
    .map((one) =>
      one.path === path ? one.message : `${one.path.slice(path.length).replace(/^\./, "")}: ${one.message}`,
    )
    .join("; ");
}
