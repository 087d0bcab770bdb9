/** The latest changes of adaptive limits that this instance made: when, from what to what, at which utilisation. Bounded. */
import type { Limiter, LimitMove } from "sluice";
import type { LimitMoveView } from "../views/load.js";

export const MOST_MOVES = 200;

type NotedMove = LimitMoveView & { readonly rule: string };

export class LimitMoves {
  readonly #instance: string;
  #moves: NotedMove[] = [];
  /** Incremented with each change. */
  version = 0;

  constructor(limiter: Pick<Limiter, "on">, instance: string, now: () => number = Date.now) {
    this.#instance = instance;
    limiter.on("limit", (move) => this.#note(move, now()));
  }

  list(): readonly NotedMove[] {
    return this.#moves;
  }

  /** Records only its own changes: other instances record theirs. */
  #note({ rule, from, to, utilisation, leads, alone }: LimitMove, atMs: number): void {
    if (!leads && !alone) return;
    const noted = { rule, atMs, from, to, instance: this.#instance, alone };
    this.#moves = [...this.#moves, { ...noted, ...(utilisation !== undefined && { utilisation }) }].slice(-MOST_MOVES);
    this.version++;
  }
}
