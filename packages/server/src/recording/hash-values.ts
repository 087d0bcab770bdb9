/**
 * Keyed hashes in place of attribute values, for recordings without personal data. Equal values stay equal, so that keys are counted as they
 * were; a literal value in a rule is hashed like the attribute that it is compared with. Patterns (globs, address blocks) cannot look into
 * a hash, and variants are chosen by the value itself: rules that do so are replayed as uncertain. Pure but for the key.
 */
import { createHmac } from "node:crypto";
import type { Attributes, Match, Rule } from "sluice";
import { bytesOf } from "../own-text.js";
import type { Redaction } from "./recording-lines.js";

/** 96 bits: no two values of a recording meet by chance. */
const LENGTH = 16;
/** A hash costs a microsecond or two, and the same values come again and again. */
const MOST_REMEMBERED = 10_000;

export class HashedValues implements Redaction {
  readonly names: ReadonlySet<string>;
  readonly #key: string;
  #hashes = new Map<string, string>();

  constructor(names: readonly string[], key: string) {
    this.names = new Set(names);
    this.#key = key;
  }

  attributes = (attributes: Attributes): Attributes => {
    if (this.names.size === 0) return attributes;
    // Not by assignment: an attribute may be named "__proto__". What is neither text, number nor boolean is absent to rules.
    const entries = Object.entries(attributes).filter(
      ([name, value]) => !this.names.has(name) || ["string", "number", "boolean"].includes(typeof value),
    );
    return Object.fromEntries(
      entries.map(([name, value]) => [name, this.names.has(name) ? this.hash(String(value)) : value]),
    );
  };

  /** Ids are the clients' own words, and often hold what their attributes hold. */
  id = (id: string): string => (this.names.size === 0 ? id : this.hash(id));

  hash(value: string): string {
    let hash = this.#hashes.get(value);
    if (hash === undefined) {
      hash = createHmac("sha256", this.#key).update(bytesOf(value)).digest("base64url").slice(0, LENGTH);
      if (this.#hashes.size >= MOST_REMEMBERED) this.#hashes = new Map();
      this.#hashes.set(value, hash);
    }
    return hash;
  }

  rule(rule: Rule): Rule {
    if (this.names.size === 0) return rule;
    return {
      ...rule,
      ...(rule.match !== undefined && { match: this.#match(rule.match) }),
      ...(rule.overrides !== undefined && {
        overrides: rule.overrides.map((override) => ({ ...override, match: this.#match(override.match) })),
      }),
    };
  }

  #match(match: Match): Match {
    const hashed = (name: string, value: unknown): unknown =>
      isPresence(value) || looksInside(name, value) ? value : this.hash(String(value));
    return Object.fromEntries(
      Object.entries(match).map(([name, value]) => [
        name,
        !this.names.has(name)
          ? value
          : Array.isArray(value)
            ? value.map((one) => hashed(name, one))
            : hashed(name, value),
      ]),
    ) as Match;
  }
}

function isPresence(value: unknown): boolean {
  return value === "*" || value === "**";
}

/** Whether a condition reads the value rather than compares it: addresses are read as addresses, even single ones. */
function looksInside(name: string, value: unknown): boolean {
  return !isPresence(value) && (name === "ip" || String(value).includes("*"));
}

/** The rules whose outcome a replay cannot know, because they look into hashed values. */
export function opaqueRules(rules: readonly Rule[], hashed: readonly string[]): Set<string> {
  const names = new Set(hashed);
  const readsInside = (match: Match = {}): boolean =>
    Object.entries(match).some(
      ([name, value]) => names.has(name) && [value].flat().some((one) => looksInside(name, one)),
    );
  const isOpaque = ({ match, overrides = [], variants, key, cost }: Rule): boolean =>
    readsInside(match) ||
    overrides.some((override) => readsInside(override.match)) ||
    (variants !== undefined && key.some((name) => names.has(name))) ||
    (typeof cost === "object" && names.has(cost.attribute));
  return new Set(names.size === 0 ? [] : rules.filter(isOpaque).map(({ id }) => id));
}
