/**
 * The holder's side of the prefetch protocol as it ships: `HeldUnits`, in the states of the model. A holder is rebuilt from what has
 * happened to it, event by event, so that states can be compared and branched.
 * In: what happened before, and one thing more. Out: what is in hand, until when, and the fetch that is sent. Pure.
 *
 * How many units a fetch wants is left to the model, which always asks for all: that is a matter of load, not of safety.
 */
import type { Fetch } from "../../../packages/sluice/src/algorithms/grants.js";
import type { CheckPlan } from "../../../packages/sluice/src/check.js";
import { HeldUnits } from "../../../packages/sluice/src/prefetch/held-units.js";

/** Long enough that the allowance for drift (2 % and 1 ms) is a part of a step. */
const STEP_MS = 100;
/** Instants of the library are never 0. */
const START_MS = 1_000;

export type HolderEvent =
  | { readonly kind: "use" }
  | { readonly kind: "ask" | "give-back"; readonly at: number }
  | {
      readonly kind: "hear";
      readonly at: number;
      readonly seq: number;
      readonly units: number;
      readonly kept: number;
      readonly life: number;
    };

/** Both are mistakes that a caller of `HeldUnits` could make: the check must find them. */
export type HolderMistake = "term-from-reply" | "late-reply";

export interface ShippedHand {
  readonly units: number;
  /** The first step at which no unit is usable. */
  readonly end: number;
  /** What the last event sent. */
  readonly sent: Fetch | undefined;
}

export function handAfter(
  events: readonly HolderEvent[],
  { name, termSteps, mistake }: { name: number; termSteps: number; mistake?: string | undefined },
): ShippedHand {
  const plan = { prefetchMs: termSteps * STEP_MS, policy: { stored: "rolling-window-packed" } } as CheckPlan;
  const hand = new HeldUnits("key", plan, String(name), START_MS);
  const fetches = new Map<number, { fetch: Fetch; sentMonotonicMs: number }>();
  let sent: Fetch | undefined;
  for (const event of events) {
    sent = undefined;
    if (event.kind === "use") {
      hand.use(1);
      continue;
    }
    const nowMonotonicMs = START_MS + event.at * STEP_MS;
    if (event.kind === "hear") {
      const { fetch, sentMonotonicMs } = fetches.get(event.seq)!;
      const heard = mistake === "late-reply" ? { ...fetch, seq: fetches.size } : fetch;
      const from = mistake === "term-from-reply" ? nowMonotonicMs : sentMonotonicMs;
      const grant = { units: event.units, kept: event.kept, lifeMs: event.life * STEP_MS };
      hand.granted(heard, grant, { plan, sentMonotonicMs: from, nowMonotonicMs });
      continue;
    }
    sent = event.kind === "ask" ? hand.nextFetch(0, nowMonotonicMs) : hand.lastFetch();
    fetches.set(sent.seq, { fetch: sent, sentMonotonicMs: nowMonotonicMs });
  }
  return { units: hand.units, end: Math.ceil((hand.endsAtMonotonicMs - START_MS) / STEP_MS), sent };
}
