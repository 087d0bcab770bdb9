/**
 * Which keys one script reaches on a cluster: all keys of a node, if scripts may cross slots (Redis 7, Valkey). Otherwise those of one hash
 * tag: on servers without such scripts, in migrating slots, and for a moment on a node that did not have every key it was asked for.
 */
import { hashTag } from "../../../keys.js";
import { redisSays } from "../failure.js";
import type { MovingSlots } from "./moving-slots.js";

/** As long as a slot counts as migrating after it was found so. */
const BY_TAG_MS = 250;
const MOST_NODES = 1_024;

/** A key has moved to another node, or is on its way there. The wording depends on the Redis version. */
const NOT_ALL_HERE = /non[ -]local key|hash to the same slot|^CROSSSLOT\b/i;
/** The server has no scripts that cross slots: it is too old, or restricts scripts to the keys they were called with. */
const NOT_KNOWN = /near '#'|unexpected (flag|engine)|unknown flag|shebang|undeclared key/i;

export class NodeReach {
  readonly #nodeOf: (key: string) => string;
  readonly #moving: MovingSlots;
  readonly #byTagUntilMonotonicMs = new Map<string, number>();
  #isKnown = true;

  constructor(nodeOf: (key: string) => string, moving: MovingSlots) {
    this.#nodeOf = nodeOf;
    this.#moving = moving;
  }

  /** A name for the reach of a key: one script reaches all keys with that name. */
  readonly of = (key: string): string => {
    if (!this.#isKnown || (this.#moving.size > 0 && this.#moving.has(hashTag(key)))) return hashTag(key);
    const node = this.#nodeOf(key);
    // An address is never equal to a tag: tags are "*", or contain "=" or "#".
    return node === "" || this.#isByTag(node) ? hashTag(key) : node;
  };

  /** Whether a script over several slots failed for that reason: nothing was written, and decisions go by tag for now. */
  wasRefused(firstKey: string, error: unknown): boolean {
    if (redisSays(error, NOT_KNOWN)) {
      this.#isKnown = false;
      return true;
    }
    if (!redisSays(error, NOT_ALL_HERE)) return false;
    if (this.#byTagUntilMonotonicMs.size === MOST_NODES) this.#byTagUntilMonotonicMs.clear();
    this.#byTagUntilMonotonicMs.set(this.#nodeOf(firstKey), performance.now() + BY_TAG_MS);
    return true;
  }

  #isByTag(node: string): boolean {
    if (this.#byTagUntilMonotonicMs.size === 0) return false;
    const untilMonotonicMs = this.#byTagUntilMonotonicMs.get(node);
    if (untilMonotonicMs === undefined) return false;
    if (untilMonotonicMs > performance.now()) return true;
    this.#byTagUntilMonotonicMs.delete(node);
    return false;
  }
}
