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

/** Names that are kept at once: a client that asks for ever other ranges holds no more. */
const MOST_NAMES = 32;

/** The same for calls that differ: each name has a flight of its own. */
export function singleFlightBy<A, T>(
  ms: number,
  ask: (argument: A) => Promise<T>,
): (name: string, argument: A) => Promise<T> {
  const flights = new Map<string, () => Promise<T>>();
  return (name, argument) => {
    let flight = flights.get(name);
    if (flight === undefined) {
      flight = singleFlight(ms, () => ask(argument));
      flights.set(name, flight);
      if (flights.size > MOST_NAMES) flights.delete(flights.keys().next().value!);
    }
    return flight();
  };
}
