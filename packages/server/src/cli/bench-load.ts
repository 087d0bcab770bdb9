/**
 * Sends requests over several connections, one in flight on each, bounded in number and time.
 * Without a rate it is a closed loop: a connection sends its next request when the last is answered, so a stall of the service also stalls
 * the load. With a rate it is an open loop: every request has a due time and is measured from then on, including the wait for a connection.
 * Otherwise a stall would hide itself (coordinated omission).
 * The clock is an argument, so that tests can provide their own.
 */
export interface LoadPlan {
  readonly connections: number;
  /** `Infinity` if only the duration bounds the load. */
  readonly requests: number;
  /** `Infinity` if only the number bounds the load. */
  readonly durationMs: number;
  /** Requests per second; absent for a closed loop. */
  readonly rate?: number | undefined;
}

export interface LoadClock {
  now(): number;
  /** Resolves at this time, or when the signal aborts. */
  until(atMs: number, stop: AbortSignal): Promise<void>;
}

interface LoadTools {
  readonly clock: LoadClock;
  /** Resolves when request `n` has been answered or has failed; never rejects. */
  readonly send: (n: number, dueMs: number) => Promise<void>;
  readonly stop: AbortSignal;
}

export interface LoadRun {
  readonly ended: "requests" | "duration" | "stopped";
  readonly elapsedMs: number;
  /** Open-loop requests that were due but never got a connection, by how long they had waited at the end. */
  readonly unsent: readonly { readonly waitedMs: number; readonly times: number }[];
}

/** A backlog may have millions of requests: it is summarised in this many steps. */
const BACKLOG_STEPS = 1_000;

export async function runLoad(plan: LoadPlan, { clock, send, stop }: LoadTools): Promise<LoadRun> {
  const { connections, requests, durationMs, rate } = plan;
  const startMs = clock.now();
  // Relative times: adding to the clock's large values would round, and could make one more request due.
  const sinceStartMs = (): number => clock.now() - startMs;
  let ranMs = durationMs;
  const onStop = (): void => {
    ranMs = Math.min(durationMs, sinceStartMs());
  };
  stop.addEventListener("abort", onStop);
  let next = 0;
  const connection = async (): Promise<void> => {
    while (!stop.aborted && next < requests) {
      const nowMs = sinceStartMs();
      const dueMs = rate === undefined ? nowMs : (next * 1_000) / rate;
      if (nowMs >= durationMs || dueMs >= durationMs) return;
      const n = next++;
      if (dueMs > nowMs) await clock.until(startMs + dueMs, stop);
      if (!stop.aborted) await send(n, startMs + dueMs);
    }
  };
  await Promise.all(Array.from({ length: Math.min(connections, requests) }, connection));
  stop.removeEventListener("abort", onStop);
  return {
    ended: stop.aborted ? "stopped" : next >= requests ? "requests" : "duration",
    elapsedMs: sinceStartMs(),
    unsent: rate === undefined ? [] : backlog({ next, requests, rate, ranMs }),
  };
}

function backlog(at: { next: number; requests: number; rate: number; ranMs: number }): LoadRun["unsent"] {
  const { next, requests, rate, ranMs } = at;
  const due = Math.min(requests, Math.ceil((ranMs * rate) / 1_000));
  const step = Math.max(1, Math.ceil((due - next) / BACKLOG_STEPS));
  const steps = [];
  for (let n = next; n < due; n += step)
    steps.push({ waitedMs: ranMs - (n * 1_000) / rate, times: Math.min(step, due - n) });
  return steps;
}
