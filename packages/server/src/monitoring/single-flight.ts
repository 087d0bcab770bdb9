/** Single-flight with a TTL: many screens showing the same figures cause a single read. */

/** Shares one call of `ask` among all callers within `ms`. Failures are not cached. */
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

/** Maximum number of cached names: a client that keeps asking for new ranges holds no more. */
const MOST_NAMES = 32;

/** The same for parameterised calls: one flight per name. */
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
