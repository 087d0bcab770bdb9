/**
 * A request on arrival: its rank, and the hash that determines its fair share. The seed changes with the wall clock every ten minutes, in
 * every instance at once, so that nobody is shed forever.
 */

import type { Attributes } from "../rules/rule.js";
import { hashText, scatter, stableHash } from "../rules/variant-choice.js";
import type { Arrival } from "./class-valve.js";

const RESEED_EVERY_MS = 600_000;
/**
 * A request's identity is computed from at most this many attributes and characters of each: a flood of long ones must stay cheap to shed.
 */
const MOST_ATTRIBUTES = 32;
const MOST_CHARACTERS = 128;
const TWO_TO_32 = 2 ** 32;

export class RequestArrival implements Arrival {
  readonly fairHash: number | undefined;
  readonly chance: number;
  readonly looks: boolean;
  readonly #attributes: Attributes;
  #rank = -1;

  constructor(request: { attributes: Attributes; fairKey: string | undefined; chance: number; looks: boolean }) {
    this.#attributes = request.attributes;
    this.chance = request.chance;
    this.looks = request.looks;
    this.fairHash =
      request.fairKey === undefined ? undefined : stableHash(seed(), request.fairKey.slice(0, MOST_CHARACTERS));
  }

  /** Computed from everything known about the request, in any order: a retry has the rank of the first attempt. */
  get rank(): number {
    if (this.#rank >= 0) return this.#rank;
    const attributes = this.#attributes;
    const start = seed();
    let sum = 0;
    let count = 0;
    for (const name in attributes) {
      if (++count > MOST_ATTRIBUTES) break;
      const value = attributes[name];
      if (value === undefined) continue;
      const text = typeof value === "string" ? value : String(value);
      sum = (sum + stableHash(start, text.length > MOST_CHARACTERS ? text.slice(0, MOST_CHARACTERS) : text)) | 0;
    }
    this.#rank = scatter(sum) / TWO_TO_32;
    return this.#rank;
  }
}

/** Computed once per ten minutes. */
const current = { period: -1, seed: 0 };

function seed(): number {
  const period = Math.floor(Date.now() / RESEED_EVERY_MS);
  if (period !== current.period) {
    current.period = period;
    current.seed = hashText(String(period));
  }
  return current.seed;
}
