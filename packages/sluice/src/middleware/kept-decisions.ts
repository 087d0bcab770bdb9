/**
 * The latest decisions of each key, for callers that later name only the key. Bounded over all keys: the key that was idle longest is
 * forgotten first. In: decisions. Out: one of them, once.
 */
import type { Decision } from "../limiter/decision.js";

const MOST_KEPT = 10_000;

export class KeptDecisions {
  /** Latest last; a key without decisions is not in here. */
  readonly #byKey = new Map<string, Decision[]>();
  #count = 0;

  /** How many keys have decisions. */
  get keys(): number {
    return this.#byKey.size;
  }

  keep(key: string, decision: Decision): void {
    const decisions = this.#byKey.get(key) ?? [];
    decisions.push(decision);
    // Moved to the end.
    this.#byKey.delete(key);
    this.#byKey.set(key, decisions);
    this.#count++;
    while (this.#count > MOST_KEPT) {
      const [oldest, its] = this.#byKey.entries().next().value!;
      this.#remove(oldest, its, 0);
    }
  }

  /** False if it is not kept any more. */
  take(key: string, decision: Decision): boolean {
    const decisions = this.#byKey.get(key);
    const at = decisions?.indexOf(decision) ?? -1;
    if (at === -1) return false;
    this.#remove(key, decisions!, at);
    return true;
  }

  takeLatest(key: string): Decision | undefined {
    const decisions = this.#byKey.get(key);
    return decisions && this.#remove(key, decisions, decisions.length - 1);
  }

  forget(key: string): void {
    this.#count -= this.#byKey.get(key)?.length ?? 0;
    this.#byKey.delete(key);
  }

  #remove(key: string, decisions: Decision[], at: number): Decision {
    const [removed] = decisions.splice(at, 1);
    this.#count--;
    if (decisions.length === 0) this.#byKey.delete(key);
    return removed!;
  }
}
