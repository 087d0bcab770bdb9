/**
 * The latest charged requests, by what they asked for: `is_negative_hits` undoes the newest that had the same descriptors and hits.
 * A request in Envoy's protocol has no id, so this is the only thread between a charge and its return. Bounded: the oldest are forgotten,
 * and their charges end by themselves.
 *
 * Most users never give anything back, and remembering every request would cost them as much as deciding it. So a request is remembered if it
 * holds a place, or if something of its shape (the domain and the descriptors' keys) has been given back before.
 */
import type { Decision } from "sluice";

const MOST_REMEMBERED = 20_000;
const MOST_SHAPES = 1_000;

export class ChargeLedger {
  /** In the order of the last use. */
  readonly #byRequest = new Map<string, Decision[]>();
  readonly #shapes = new Set<string>();
  #count = 0;

  /** Whether requests of this shape are given back at all. */
  expects(shape: string): boolean {
    return this.#shapes.has(shape);
  }

  expect(shape: string): void {
    if (this.#shapes.size < MOST_SHAPES) this.#shapes.add(shape);
  }

  /** False until anything was ever given back: then shapes need not be spelled. */
  get isInUse(): boolean {
    return this.#shapes.size > 0;
  }

  remember(request: string, decision: Decision): void {
    const charged = this.#byRequest.get(request) ?? [];
    this.#byRequest.delete(request);
    this.#byRequest.set(request, charged);
    charged.push(decision);
    this.#count++;
    while (this.#count > MOST_REMEMBERED) this.#forgetOldest();
  }

  /** The newest, which is then no longer remembered. */
  take(request: string): Decision | undefined {
    const charged = this.#byRequest.get(request);
    const newest = charged?.pop();
    if (newest !== undefined) this.#count--;
    if (charged?.length === 0) this.#byRequest.delete(request);
    return newest;
  }

  #forgetOldest(): void {
    const [request, charged] = this.#byRequest.entries().next().value!;
    charged.shift();
    this.#count--;
    if (charged.length === 0) this.#byRequest.delete(request);
  }
}
