/**
 * Visits every state that a small protocol can reach, breadth first, so that the first broken state has the shortest way to it.
 * In: the start, the moves from a state, and what must hold. Out: how many states there are, and the way to a broken one. Pure.
 */
export interface Move<S> {
  readonly name: string;
  readonly to: S;
}

export interface Protocol<S> {
  readonly start: S;
  moves(state: S): readonly Move<S>[];
  /** What is wrong with a state; undefined if nothing is. */
  broken(state: S): string | undefined;
  /** The same for states that differ in nothing that matters. */
  key(state: S): string;
}

export interface Explored {
  readonly states: number;
  readonly violation: { readonly what: string; readonly way: readonly string[] } | undefined;
}

interface Visited<S> {
  readonly state: S;
  readonly name: string;
  readonly before: Visited<S> | undefined;
}

export function explore<S>({ start, moves, broken, key }: Protocol<S>, mostStates = 2_000_000): Explored {
  const seen = new Set([key(start)]);
  let front: Visited<S>[] = [{ state: start, name: "start", before: undefined }];
  while (front.length > 0) {
    const next: Visited<S>[] = [];
    for (const before of front) {
      for (const { name, to } of moves(before.state)) {
        const found = key(to);
        if (seen.has(found)) continue;
        seen.add(found);
        const visited = { state: to, name, before };
        const what = broken(to);
        if (what !== undefined) return { states: seen.size, violation: { what, way: wayTo(visited) } };
        next.push(visited);
      }
    }
    // A search that ends early would pass for a proof.
    if (seen.size > mostStates) throw new Error(`more than ${mostStates} states: choose smaller constants`);
    front = next;
  }
  return { states: seen.size, violation: undefined };
}

function wayTo<S>(last: Visited<S>): string[] {
  const way: string[] = [];
  for (let at: Visited<S> | undefined = last; at?.before !== undefined; at = at.before) way.unshift(at.name);
  return way;
}
