/**
 * Slots that are being migrated to another node (resharding), by the hash tags that were found in them. For a moment, scripts with several
 * keys are not tried first for such a tag, because a client retries such a call for a long time before it gives up.
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
    // Slots migrate one by one, so a full map holds mostly old entries.
    if (this.#untilMonotonicMs.size === MOST_MOVING_TAGS) this.#untilMonotonicMs.clear();
    this.#untilMonotonicMs.set(tag, performance.now() + MOVING_MS);
  }

  /** Call when a script has run over several keys of the tag. */
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

/** A slot is being migrated, and only some of a script's keys have arrived on the other node. Nothing was run. */
export function slotIsMoving(error: unknown): boolean {
  return redisSays(error, /^(TRYAGAIN|Too many Cluster redirections)\b/) !== null;
}
