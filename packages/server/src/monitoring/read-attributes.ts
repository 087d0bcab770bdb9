/** The attribute names seen in requests by any instance: by this one, and by the others as published in the shared state. */
import type { SharedState } from "../instance/shared-state.js";
import { ATTRIBUTES_PREFIX } from "./recorder.js";
import type { SeenAttributes } from "./seen-attributes.js";

export interface SeenNames {
  readonly names: ReadonlySet<string>;
  /** False if there were too many, or other instances are unreachable: then a missing name proves nothing. */
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
