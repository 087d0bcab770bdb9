/**
 * Which keys one script reaches on a cluster: all of a node, where scripts may cross slots (Redis 7, Valkey). Else those of one tag: on servers
 * that do not know such scripts, in slots that are moving, and for a moment on a node that did not have every key it was asked for.
 */
import { hashTag } from "../../../keys.js";
import { redisSays } from "../failure.js";
import type { MovingSlots } from "./moving-slots.js";

/** As long as a slot is taken to be moving once it was found so. */
const BY_TAG_MS = 250;
const MOST_NODES = 1_024;

/** A key is on another node by now, or on its way there. Redis words it by version. */
const NOT_ALL_HERE = /non[ -]local key|hash to the same slot|^CROSSSLOT\b/i;
/** The server has no scripts that cross slots: it is older, or allows scripts the keys alone that they were called with. */
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

  /** A name for the reach of a key: one script reaches all keys of that name. */
  readonly of = (key: string): string => {
    if (!this.#isKnown || (this.#moving.size > 0 && this.#moving.has(hashTag(key)))) return hashTag(key);
    const node = this.#nodeOf(key);
    // No address is a tag: those are "*", or hold "=" or "#".
    return node === "" || this.#isByTag(node) ? hashTag(key) : node;
  };

  /** Whether a script over several slots failed because it was one: nothing was written, and it is decided by tag for now. */
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
