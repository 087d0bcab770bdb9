/**
 * Cooperative scheduling: long work on the thread that also decides requests. It runs in time slices, one a turn of the event loop,
 * and requests are answered between two slices. All long work shares one round-robin: two jobs at once never add up to one long pause.
 *
 * Work comes in two forms:
 *   Sliced<T>  pure work: a generator that yields where it can pause and returns its outcome. Its functions are named in the -ing
 *              form (`compilingRules`), its loops read `if (stride.isOver()) yield;`. `runInSlices` runs it beside requests,
 *              `runAtOnce` for callers that can wait.
 *   TimeSlice  work that awaits I/O as well: its loops read `if (slice.isOver()) await slice.next();`.
 */

export type Sliced<T> = Generator<void, T, void>;

/** A request that arrives during a slice waits until the slice ends. */
const SLICE_MS = 4;
/** Steps between two looks at the clock: a step is the work of one value or one override, a few microseconds. */
const STRIDE = 128;

/** Counts the steps of one piece of sliced work, including those of the plain functions that it calls. */
export class Stride {
  #steps = 0;

  /** For steps that offer no place to pause. */
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

/** Begins in the next turn of the event loop. */
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

/** The current slice of an async function. The first slice begins where it is made: short work never pauses. */
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

function takeTurn(): void {
  // The job stays in the queue while it runs, so that a job queued meanwhile does not schedule a second turn.
  const job = jobs[0]!;
  const isDone = job();
  jobs.shift();
  if (!isDone) jobs.push(job);
  if (jobs.length > 0) setImmediate(takeTurn);
}
