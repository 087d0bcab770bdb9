/**
 * Warns, once, of rules that count by an attribute that no request has: a misspelled name, or a forgotten `attributes`. Such a rule applies
 * to no request, so every request passes. In: the attributes of the first requests. After that nothing is inspected.
 */
import { warnOnce } from "../http/warn-once.js";
import type { Limiter } from "../limiter/limiter.js";
import type { Attributes } from "../rules/rule.js";

/** Enough to see an attribute that only some requests have, few enough to be reached during a first trial under load. */
const LOOKED_AT = 100;

export class AbsentKeys {
  readonly #limiter: Limiter;
  readonly #seen = new Set<string>();
  #left = LOOKED_AT;

  constructor(limiter: Limiter) {
    this.#limiter = limiter;
  }

  saw(attributes: Attributes): void {
    if (this.#left === 0) return;
    for (const name in attributes) if (attributes[name] !== undefined) this.#seen.add(name);
    if (--this.#left === 0) this.#warn();
  }

  #warn(): void {
    for (const { id, key = [], mode } of this.#limiter.rules) {
      const absent = key.filter((name) => !this.#seen.has(name));
      if (absent.length === 0 || mode === "off") continue;
      warnOnce(
        "SLUICE_ABSENT_KEY",
        `rule ${id} counts by ${absent.join(", ")}, which none of the first ${LOOKED_AT} requests had: it applied to none of them. ` +
          `Requests here have ${[...this.#seen].join(", ")}; the option \`attributes\` adds more.`,
        id,
      );
    }
    this.#seen.clear();
  }
}
