/**
 * Cooperative scheduling: long work on the thread that also decides requests. It runs in time slices, one per turn of the event loop, and
 * requests are answered between slices. All long work shares one round-robin queue: two concurrent jobs never add up to one long pause.
 *
 * Work comes in two forms:
 *   Sliced<T>  pure work: a generator that yields where it can pause and returns its result. Its functions have names in the -ing
 *              form (`compilingRules`), its loops read `if (stride.isOver()) yield;`. `runInSlices` runs it between requests,
 *              `runAtOnce` for callers that can wait.
 *   TimeSlice  work that also awaits I/O: its loops read `if (slice.isOver()) await slice.next();`.
 */

export type Sliced<T> = Generator<void, T, void>;

/** A request that arrives during a slice waits until the slice ends. */
const SLICE_MS = 1;
/** If a turn of the event loop took longer than this, it had other work. */
const OTHERS_MS = 0.05;
/** The shortest delay of a timer. */
const PAUSE_MS = 1;
/** Steps between two readings of the clock: a step is the work of one value or one override, a few microseconds. */
const STRIDE = 128;

/** Counts the steps of one piece of sliced work, including those of the plain functions that it calls. */
export class Stride {
  #steps = 0;

  /** For steps without a place to pause. */
  add(steps: number): void {
    this.#steps += steps;
  }

  /** Counts one step; returns whether it is time to yield. */
  isOver(): boolean {
    if (++this.#steps < STRIDE) return false;
    this.#steps = 0;
    return true;
  }
}

export function runAtOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Starts in the next turn of the event loop. */
export function runInSlices<T>(work: Sliced<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    queueJob(() => {
      try {
        const endMonotonicMs = performance.now() + SLICE_MS;
        do {
          const step = work.next();
          if (step.done) {
            resolve(step.value);
            return true;
          }
        } while (performance.now() < endMonotonicMs);
        return false;
      } catch (error) {
        reject(error);
        return true;
      }
    });
  });
}

/** The current slice of an async function. The first slice starts when it is made, so short work never pauses. */
export class TimeSlice {
  #endMonotonicMs = performance.now() + SLICE_MS;

  isOver(): boolean {
    return performance.now() >= this.#endMonotonicMs;
  }

  /** Resolves at the start of this job's next turn. */
  async next(): Promise<void> {
    await new Promise<void>((resolve) => {
      queueJob(() => {
        resolve();
        return true;
      });
    });
    this.#endMonotonicMs = performance.now() + SLICE_MS;
  }
}

/** A job runs one slice and returns whether it is done. The first job of the queue has the next turn. */
const jobs: (() => boolean)[] = [];

function queueJob(job: () => boolean): void {
  jobs.push(job);
  if (jobs.length === 1) setImmediate(takeTurn);
}

/** When the last slice ended; infinity before the first. */
let endedMonotonicMs = Number.POSITIVE_INFINITY;

function takeTurn(): void {
  // Requests were answered since the last slice: requests arriving now, and the store's replies to them, go first.
  if (performance.now() - endedMonotonicMs > OTHERS_MS) {
    endedMonotonicMs = Number.POSITIVE_INFINITY;
    setTimeout(takeTurn, PAUSE_MS);
    return;
  }
  // The job stays in the queue while it runs, so that a job queued meanwhile does not schedule a second turn.
  const job = jobs[0]!;
  const isDone = job();
  jobs.shift();
  if (!isDone) jobs.push(job);
  endedMonotonicMs = jobs.length > 0 ? performance.now() : Number.POSITIVE_INFINITY;
  if (jobs.length > 0) setImmediate(takeTurn);
}
