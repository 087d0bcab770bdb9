/**
 * Places of concurrency rules as their holders see them: taken when the decision arrives, left when the work ends. At no instant may
 * more be held than the limit, on any clock.
 */
import { KEY_PREFIX, ruleOfKey } from "../../packages/sluice/src/keys.js";
import type { Decision } from "../../packages/sluice/src/limiter/decision.js";
import { parseLeaseId } from "../../packages/sluice/src/limiter/lease-id.js";
import type { Actor, Simulation } from "./simulation.js";

interface Held {
  readonly key: string;
  readonly places: number;
  readonly actor: Actor;
  gone: boolean;
}

export class Places {
  readonly #simulation: Simulation;
  readonly #held = new Map<string, Set<Held>>();
  most = 0;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  take(actor: Actor, decision: Decision): Held[] {
    const { lease, local } = parseLeaseId(decision.lease!.id);
    // Places of an instance's own fallback are bounded by its share: the judge of shares sees to them.
    if (local) return [];
    return lease.places.map(({ key, places }) => {
      const held: Held = { key, places, actor, gone: false };
      const all = this.#held.get(key) ?? new Set();
      this.#held.set(key, all.add(held));
      const limit = decision.checks.find(({ rule }) => rule === ruleOfKey(KEY_PREFIX + key)?.rule)?.limit ?? 0;
      const count = this.#count(all);
      this.most = Math.max(this.most, count / limit);
      if (count > limit) this.#simulation.fail(`${count} places of ${limit} are held under ${key}`);
      return held;
    });
  }

  leave(held: readonly Held[]): void {
    for (const one of held) {
      one.gone = true;
      this.#held.get(one.key)?.delete(one);
    }
  }

  /** A crashed holder does no work. */
  #count(all: ReadonlySet<Held>): number {
    let count = 0;
    for (const { places, actor } of all) if (actor.alive) count += places;
    return count;
  }
}
