/** The names of attributes that requests had, of all instances: those that this one saw, and those that others keep in the shared state. */
import type { SharedState } from "../instance/shared-state.js";
import { ATTRIBUTES_PREFIX } from "./recorder.js";
import type { SeenAttributes } from "./seen-attributes.js";

export interface SeenNames {
  readonly names: ReadonlySet<string>;
  /** False where there were more than are kept, or other instances cannot be asked: then a name that is missing says nothing. */
  readonly isComplete: boolean;
}

export async function readAttributes(
  shared: SharedState,
  { names: own, isComplete: isOwnComplete }: Pick<SeenAttributes, "names" | "isComplete">,
): Promise<SeenNames> {
  const names = new Set(own);
  const texts = await shared.readAll(ATTRIBUTES_PREFIX).catch(() => undefined);
  if (texts === undefined) return { names, isComplete: false };
  let isComplete = isOwnComplete;
  for (const text of texts.values()) {
    const seen = JSON.parse(text) as { names: string[]; isComplete: boolean };
    for (const name of seen.names) names.add(name);
    isComplete &&= seen.isComplete;
  }
  return { names, isComplete };
}
