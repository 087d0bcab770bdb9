/**
 * Units that holders have prefetched, while a slot is being migrated and a script has only one key: the counter's script does not see them.
 *
 * So the grants are read before the counter is charged, and again after. If nothing changed in between, the charge was made next to exactly
 * those units, and stands if it leaves room for them. If something changed, a fetch has run over counter and grants together: the slot is
 * whole again, and the request is decided anew.
 */
import { type Verdict, verdict } from "../../../algorithms/model.js";
import type { Check } from "../../../check.js";
import { SluiceError } from "../../../errors.js";
import { grantsKey } from "../../../keys.js";
import type { StoreReply } from "../../store.js";
import type { RedisCalls } from "../calls.js";
import { numbersNamed } from "../script-reply.js";
import type { Undo } from "./compensation.js";
import { givenBack, type Part, refuses, undoOf } from "./split-by-tag.js";

/** How soon to look again at units that have expired but are not charged yet. */
const SHORTEST_WAIT_MS = 1;

interface Held {
  readonly units: number;
  readonly endInMs: number;
  readonly changes: number;
}

/** Units were fetched or given back while the counter was charged. Nothing stays charged. */
export class GrantsChanged extends SluiceError {
  constructor() {
    super("store-unavailable", "Redis: units of the key were fetched while its slot was moving");
  }
}

/** Units of this key's counter, over all holders. */
export async function heldElsewhere(calls: RedisCalls, key: string, endsAtMonotonicMs: number): Promise<Held> {
  const reply = await calls.run("held", [grantsKey(key)], [], endsAtMonotonicMs);
  const [units, endInMs, changes] = numbersNamed(reply, "units", "end_in_ms", "changes") as [number, number, number];
  return { units, endInMs, changes };
}

/** The part's reply when those units count as well, and what to undo because they leave no room. */
export function besideHeld(part: Part, reply: StoreReply, held: Held): { reply: StoreReply; undos: Undo[] } {
  if (held.units <= 0) return { reply, undos: [] };
  const { checks } = part.request;
  const verdicts = reply.verdicts.map((found, i) => verdictBeside(found, checks[i]!, held));
  const isRefused = checks.some((check, i) => refuses(check, verdicts[i]!));
  const isUndone = (check: Check, i: number): boolean => check.charge !== true && (isRefused || !verdicts[i]!.allowed);
  return {
    reply: {
      ...reply,
      verdicts: isRefused ? verdicts.map((found, i) => givenBack(checks[i]!, found)) : verdicts,
    },
    undos: undoOf(part, reply, isUndone),
  };
}

function verdictBeside(found: Verdict, { cost, charge }: Check, { units, endInMs }: Held): Verdict {
  const remaining = found.remaining - units;
  const before = found.charged ? remaining + cost : remaining;
  if (!found.allowed || charge === true || cost === 0 || before >= cost) return { ...found, remaining };
  const waitMs = Math.max(SHORTEST_WAIT_MS, endInMs);
  return verdict(false, before, waitMs, Math.max(found.resetAfterMs, waitMs), "limit");
}
