/**
 * Requests of one turn are free to be decided in any order; this is the one that the store takes: part by part, call by call, like requests
 * of a call together. It holds as long as no plain script leaves its call to another, behind later ones: so a turn must not mix requests
 * for the script `decide` with those for others (`isForDecide`) where counters may be in debt or far ahead.
 */
import { arrange } from "../../packages/sluice/src/store/redis/choose-script.js";
import { LEAST_AHEAD } from "../../packages/sluice/src/store/redis/decide-queue.js";
import { encodeSingles } from "../../packages/sluice/src/store/redis/wire.js";
import type { StoreRequest } from "../../packages/sluice/src/store/store.js";

/** Nothing else is under way. */
export function inOrderOfDecision<T extends { request: StoreRequest }>(pending: readonly T[]): T[] {
  return partsOf(pending).flatMap(inOrderOfPart);
}

/** As a large round leaves: a part as soon as it is large enough, and no smaller than what is under way. */
function partsOf<T>(pending: readonly T[]): T[][] {
  const parts: T[][] = [[]];
  let underWay = 0;
  for (const entry of pending) {
    const waiting = parts.at(-1)!;
    waiting.push(entry);
    if (waiting.length < LEAST_AHEAD || waiting.length < underWay) continue;
    underWay += waiting.length;
    parts.push([]);
  }
  return parts.filter(({ length }) => length > 0);
}

function inOrderOfPart<T extends { request: StoreRequest }>(pending: readonly T[]): T[] {
  const addressed = pending.map((entry) => ({ ...entry, recordKey: undefined }));
  return arrange(addressed).flatMap(({ script, batch }): T[] => {
    if (script === "decide" || script === "turns") return batch;
    return encodeSingles(batch, 0).groups.flatMap(({ members }) => members.map((i) => batch[i]!));
  });
}

export function isForDecide(request: StoreRequest): boolean {
  return arrange([{ request }])[0]!.script === "decide";
}
