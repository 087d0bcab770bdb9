/**
 * Judges what a limiter did while things broke, from the recorded history of all its decisions: what was admitted beyond the limit in
 * any window, how long any caller waited, how many were answered by policy, and when exactness came back.
 * Pure: it sees times and answers only, so that it can be tried on histories made by hand.
 */

/** One check, as its caller saw it. Times are of one monotonic clock, but `decidedAtMs`. */
export interface Answer {
  readonly key: string;
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
  readonly allowed: boolean;
  /** The failure policy that answered instead of the store. */
  readonly degraded?: string;
  /** By the clock of the server that decided. */
  readonly decidedAtMs?: number;
  /** What was thrown: a check that failed its caller. */
  readonly failure?: string;
}

export interface Limit {
  readonly limit: number;
  readonly windowMs: number;
}

export interface Excess {
  readonly key: string;
  /** Admissions beyond the limit in the worst window. */
  readonly count: number;
  /** Where that window ends, by the server's clock. */
  readonly endsAtMs: number;
}

/**
 * The worst rolling window of each key: how many more the store admitted than the limit; without those that kept to it. What a policy
 * let pass is not counted here: that is told apart, as `degraded`.
 */
export function excesses(history: readonly Answer[], { limit, windowMs }: Limit): Excess[] {
  const byKey = new Map<string, number[]>();
  for (const { key, allowed, decidedAtMs } of history) {
    if (!allowed || decidedAtMs === undefined) continue;
    const times = byKey.get(key) ?? [];
    times.push(decidedAtMs);
    byKey.set(key, times);
  }
  return [...byKey].flatMap(([key, times]) => {
    times.sort((a, b) => a - b);
    let first = 0;
    let worst = { count: 0, endsAtMs: 0 };
    times.forEach((atMs, i) => {
      // An admission leaves the window exactly one window after it was made.
      while (times[first]! <= atMs - windowMs) first++;
      const count = i - first + 1 - limit;
      if (count > worst.count) worst = { count, endsAtMs: atMs };
    });
    return worst.count > 0 ? [{ key, ...worst }] : [];
  });
}

/** A turn of the caller's event loop that took long: what was sent in it left at its end, and nobody was answered meanwhile. */
export interface LateTurn {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Waits {
  readonly worstMs: number;
  /** The worst wait without what the loop itself was late: when the check was sent, and after its deadline. */
  readonly worstOwnMs: number;
}

export function waits(
  history: readonly Answer[],
  { deadlineMs, lateTurns }: { deadlineMs: number; lateTurns: readonly LateTurn[] },
): Waits {
  let worstMs = 0;
  let worstOwnMs = 0;
  for (const { sentAtMs, answeredAtMs } of history) {
    const waitedMs = answeredAtMs - sentAtMs;
    worstMs = Math.max(worstMs, waitedMs);
    if (waitedMs <= worstOwnMs) continue;
    worstOwnMs = Math.max(worstOwnMs, waitedMs - heldUpMs(lateTurns, { sentAtMs, deadlineMs, answeredAtMs }));
  }
  return { worstMs, worstOwnMs };
}

/**
 * Shorter turns do not move a deadline, and none moves it beyond a second (`deadlines.ts`). There the end of a
 * timer's turn is late by more than 5 ms; seen from outside that may be two turns, one before the timer and its own.
 */
const LATE_MS = 2.5;
const MOST_WAIT_MS = 1_000;

/**
 * How long the loop's own lateness put an answer off. A late turn before the deadline starts it anew at the turn's end, up to a second in
 * all: time in which the process was held up does not count. What late turns took after that is added.
 */
function heldUpMs(
  lateTurns: readonly LateTurn[],
  { sentAtMs, deadlineMs, answeredAtMs }: { sentAtMs: number; deadlineMs: number; answeredAtMs: number },
): number {
  const lastMs = sentAtMs + Math.max(MOST_WAIT_MS, deadlineMs);
  let dueMs = sentAtMs + deadlineMs;
  for (const { fromMs, toMs } of lateTurns) {
    const isMoved = toMs - fromMs > LATE_MS && toMs > sentAtMs && fromMs < dueMs;
    if (isMoved) dueMs = Math.max(dueMs, Math.min(toMs + deadlineMs, lastMs));
  }
  let sumMs = dueMs - sentAtMs - deadlineMs;
  for (const { fromMs, toMs } of lateTurns)
    sumMs += Math.max(0, Math.min(toMs, answeredAtMs) - Math.max(fromMs, dueMs));
  return sumMs;
}

export interface Summary {
  readonly checks: number;
  readonly admitted: number;
  readonly byPolicy: number;
  readonly failures: readonly string[];
  /** When the last answer by policy was given; undefined if there was none. */
  readonly lastByPolicyMs: number | undefined;
}

export function summary(history: readonly Answer[]): Summary {
  const degraded = history.filter((answer) => answer.degraded !== undefined);
  return {
    checks: history.length,
    admitted: history.filter(({ allowed }) => allowed).length,
    byPolicy: degraded.length,
    failures: history.flatMap(({ failure }) => (failure === undefined ? [] : [failure])),
    lastByPolicyMs: degraded.reduce<number | undefined>(
      (last, { answeredAtMs }) => Math.max(last ?? answeredAtMs, answeredAtMs),
      undefined,
    ),
  };
}

/**
 * How long after a moment policies still answered: 0 if the store decided everything that was asked after it. Undefined if nothing was
 * asked then, or if policies answered to the very end: that exactness came back cannot be said.
 */
export function exactAfterMs(history: readonly Answer[], sinceMs: number): number | undefined {
  const later = history.filter(({ sentAtMs }) => sentAtMs >= sinceMs);
  const lastByPolicyMs = later.reduce(
    (last, { degraded, answeredAtMs }) => (degraded === undefined ? last : Math.max(last, answeredAtMs)),
    sinceMs,
  );
  const decidedAfter = later.some(({ degraded, sentAtMs }) => degraded === undefined && sentAtMs > lastByPolicyMs);
  return decidedAfter ? lastByPolicyMs - sinceMs : undefined;
}
