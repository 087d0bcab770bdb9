/**
 * Slots that are migrating to another node (resharding), by the hash tags that were found in them. For a moment, scripts of several keys
 * are not tried for such a tag first, because a client repeats such a call for long before it gives up.
 */
import { redisSays } from "../failure.js";

const MOVING_MS = 250;
const MOST_MOVING_TAGS = 1_024;

export class MovingSlots {
  readonly #untilMonotonicMs = new Map<string, number>();

  get size(): number {
    return this.#untilMonotonicMs.size;
  }

  add(tag: string): void {
    // Slots move one by one; a full map holds mostly old entries.
    if (this.#untilMonotonicMs.size === MOST_MOVING_TAGS) this.#untilMonotonicMs.clear();
    this.#untilMonotonicMs.set(tag, performance.now() + MOVING_MS);
  }

  /** A script ran over several keys of the tag. */
  delete(tag: string): void {
    this.#untilMonotonicMs.delete(tag);
  }

  has(tag: string): boolean {
    if (this.#untilMonotonicMs.size === 0) return false;
    const untilMonotonicMs = this.#untilMonotonicMs.get(tag);
    if (untilMonotonicMs === undefined) return false;
    if (untilMonotonicMs > performance.now()) return true;
    this.#untilMonotonicMs.delete(tag);
    return false;
  }
}

/** A slot is migrating, and only some of a script's keys have arrived on the other node. Nothing was run. */
export function slotIsMoving(error: unknown): boolean {
  return redisSays(error, /^(TRYAGAIN|Too many Cluster redirections)\b/) !== null;
}
