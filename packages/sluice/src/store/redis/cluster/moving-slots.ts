/**
 * Tags whose slots were found on their way to another node: for a moment, scripts of several keys are not tried for them first, because
 * a client repeats such a call for long before it gives up.
 */

const MOVING_MS = 250;
const MOST_MOVING_TAGS = 1_024;

export class MovingTags {
  readonly #untilMs = new Map<string, number>();

  add(tag: string): void {
    // Slots move one by one; a full map is one of old entries.
    if (this.#untilMs.size === MOST_MOVING_TAGS) this.#untilMs.clear();
    this.#untilMs.set(tag, performance.now() + MOVING_MS);
  }

  has(tag: string): boolean {
    if (this.#untilMs.size === 0) return false;
    const untilMs = this.#untilMs.get(tag);
    if (untilMs === undefined) return false;
    if (untilMs > performance.now()) return true;
    this.#untilMs.delete(tag);
    return false;
  }
}
