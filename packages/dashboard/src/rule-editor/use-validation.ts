/** Validates a draft with a dry run by the service, shortly after the last keystroke (debounce). */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Problem, request } from "../api/request.js";
import type { AppliedView, Mistake } from "../api/shapes.js";
import { type Draft, pathInRule } from "./draft.js";

const DEBOUNCE_MS = 300;

interface Validation {
  /** True from a keystroke until the service has answered. */
  readonly isPending: boolean;
  readonly mistakes: readonly Mistake[];
  /** For a valid draft: what is probably unintended. */
  readonly warnings: readonly Mistake[];
  /** The service could not be reached. */
  readonly error: Error | undefined;
  /** Whether saving would change anything. */
  readonly hasChanges: boolean;
}

export function useValidation(draft: Draft): Validation {
  const [settled, setSettled] = useState(draft);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(draft), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [draft]);
  const answer = useQuery({
    queryKey: ["validation", settled],
    queryFn: () => validate(settled),
    gcTime: 0,
    staleTime: 60_000,
    retry: false,
    // Retries after a failure, so that the user need not type to trigger it.
    refetchInterval: ({ state }) => (state.status === "error" ? 3_000 : false),
  });
  return {
    isPending: settled !== draft || answer.isPending,
    mistakes: answer.data?.mistakes ?? [],
    warnings: answer.data?.warnings ?? [],
    error: answer.error ?? undefined,
    hasChanges: answer.data?.hasChanges ?? false,
  };
}

interface Answer {
  readonly mistakes: readonly Mistake[];
  readonly warnings?: readonly Mistake[];
  readonly hasChanges: boolean;
}

async function validate(draft: Draft): Promise<Answer> {
  const id = typeof draft.id === "string" && draft.id !== "" ? draft.id : undefined;
  if (id === undefined) return { mistakes: [{ path: "id", message: "a rule needs an id" }], hasChanges: true };
  if (id.length > 64) return { mistakes: [{ path: "id", message: "at most 64 characters" }], hasChanges: true };
  try {
    const applied = await request<AppliedView>(`/rules/${encodeURIComponent(id)}`, {
      method: "PUT",
      body: draft,
      query: { dryRun: "true" },
    });
    return { mistakes: [], warnings: applied.warnings ?? [], hasChanges: applied.text !== "no difference" };
  } catch (error) {
    if (!(error instanceof Problem) || error.mistakes.length === 0) throw error;
    const mistakes = error.mistakes.map(({ path, message }) => ({ path: pathInRule(path), message }));
    return { mistakes, hasChanges: true };
  }
}
