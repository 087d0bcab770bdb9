/** One answer for many who ask at once: what is looked at on many screens must not be read again for each. */

/** `ask`, once for all who come within so many ms. A failure is not kept. */
export function keptFor<T>(ms: number, ask: () => Promise<T>): () => Promise<T> {
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
