/** Compares a recorded decision with its replay, and determines for how long a gap in a recording matters. Pure. */
import type { Check, StoreReply } from "sluice/internal";
import { type CheckLine, checkLine, type DecisionLine } from "../recording/recording-lines.js";

const REMEMBERED_IDS_MS = 60_000;

export function checkLines(checks: readonly Check[], { verdicts }: StoreReply): CheckLine[] {
  return checks.map(({ plan }, i) => checkLine(plan, verdicts[i]!));
}

/** `differences`: some check has a different outcome. `otherNumbers`: equal outcomes with different counts or waits. */
export function compareDecisions(
  recorded: readonly CheckLine[],
  replayed: readonly CheckLine[],
): "none" | "differences" | "otherNumbers" {
  if (recorded.length !== replayed.length) return "differences";
  let found: "none" | "otherNumbers" = "none";
  for (let i = 0; i < recorded.length; i++) {
    const [rule, mode, allowed, remaining, retryAfterMs, resetAfterMs, reason = null, variant] = recorded[i]!;
    const other = replayed[i]!;
    if (rule !== other[0] || mode !== other[1] || allowed !== other[2]) return "differences";
    if (reason !== (other[6] ?? null) || variant !== other[7]) return "differences";
    if (remaining !== other[3] || retryAfterMs !== other[4] || resetAfterMs !== other[5]) found = "otherNumbers";
  }
  return found;
}

/** How long the counters of these checks may contain something that the recording does not know. */
export function uncertainForMs(checks: readonly Check[], { id }: DecisionLine): number {
  let longestMs = id === undefined ? 0 : REMEMBERED_IDS_MS;
  for (const { plan, block } of checks) {
    const { policy } = plan;
    const spanMs =
      "windowMs" in policy
        ? policy.windowMs
        : "ttlMs" in policy
          ? policy.ttlMs
          : "capacity" in policy
            ? (policy.capacity / policy.amount) * policy.scaleMs
            : 0;
    longestMs = Math.max(longestMs, spanMs, ...(block?.lengthsMs ?? []));
  }
  // A sliding counter uses the previous window too, and a lease may have been renewed.
  return 2 * longestMs;
}
