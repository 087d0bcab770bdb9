/** Single-flight with a TTL: many screens that show the same figures cause one read, not one each. */

/** Calls `ask` once for all callers within so many ms. A failure is not cached. */
export function singleFlight<T>(ms: number, ask: () => Promise<T>): () => Promise<T> {
  let kept: Promise<T> | undefined;
  let untilMs = 0;
  return () => {
    if (kept === undefined || performance.now() >= untilMs) {
      const asked = ask();
      kept = asked;
      untilMs = performance.now() + ms;
      asked.catch(() => {
        if (kept === asked) kept = undefined;
      });
    }
    return kept;
  };
}
