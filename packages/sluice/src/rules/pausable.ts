/**
 * Long work that can pause: a generator that yields every now and then and returns its outcome. Written once, it runs in two
 * ways: at once, for callers that can wait; or in slices between the turns of the event loop, on a thread that also decides requests.
 * Functions named in the -ing form (`compilingRules`) give such work; a loop in them reads `if (stride.isOver()) yield;`.
 */

export type Pausable<T> = Generator<void, T, void>;

/** A request that arrives during a slice waits for its end. */
const SLICE_MS = 4;
/** Steps between two looks at the clock: a step is the work of one value or one override, a few microseconds. */
const STRIDE = 128;

/** Counts the steps of one piece of work, also of the plain functions that it calls. */
export class Stride {
  #steps = 0;

  /** For steps where there is no place to pause. */
  add(steps: number): void {
    this.#steps += steps;
  }

  /** Counts one step; whether it is time to yield. */
  isOver(): boolean {
    if (++this.#steps < STRIDE) return false;
    this.#steps = 0;
    return true;
  }
}

export function runAtOnce<T>(work: Pausable<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Begins in the next turn of the event loop. */
export function runInSlices<T>(work: Pausable<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    waiting.push(() => {
      try {
        const endMs = performance.now() + SLICE_MS;
        do {
          const step = work.next();
          if (step.done) {
            resolve(step.value);
            return true;
          }
        } while (performance.now() < endMs);
        return false;
      } catch (error) {
        reject(error);
        return true;
      }
    });
    if (waiting.length === 1) setImmediate(takeTurn);
  });
}

/** Each runs one slice and tells whether its work is done. All share the turns: several at once must not add up to one long pause. */
const waiting: (() => boolean)[] = [];

function takeTurn(): void {
  // It stays in the list meanwhile: whoever is added finds that turns are being taken.
  const runSlice = waiting[0]!;
  const isDone = runSlice();
  waiting.shift();
  if (!isDone) waiting.push(runSlice);
  if (waiting.length > 0) setImmediate(takeTurn);
}
