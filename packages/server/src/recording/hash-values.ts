/**
 * Replaces attribute values by keyed hashes, for recordings without personal data. Equal values stay equal, so keys are still counted
 * correctly; literal values in rules are hashed like the attribute that they are compared with. Patterns (globs, address blocks) cannot be
 * matched against a hash, and variants are chosen by the value itself: a replay treats such rules as uncertain. Pure except for the key.
 */
import { createHmac } from "node:crypto";
import type { Attributes, Match, Rule } from "sluice";
import { bytesOf } from "../own-text.js";
import type { Redaction } from "./recording-lines.js";

/** 96 bits: collisions within a recording are practically impossible. */
const LENGTH = 16;
/** A hash takes a microsecond or two, and values repeat. */
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
    // fromEntries, not assignment: an attribute may be named "__proto__". Rules ignore values that are no string, number or boolean.
    const entries = Object.entries(attributes).filter(
      ([name, value]) => !this.names.has(name) || ["string", "number", "boolean"].includes(typeof value),
    );
    return Object.fromEntries(
      entries.map(([name, value]) => [name, this.names.has(name) ? this.hash(String(value)) : value]),
    );
  };

  /** Ids are chosen by clients, and often contain attribute values. */
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

/** Whether a condition interprets the value rather than compares it: even single addresses are parsed. */
function looksInside(name: string, value: unknown): boolean {
  return !isPresence(value) && (name === "ip" || String(value).includes("*"));
}

/** Rules whose outcome a replay cannot know, because they interpret hashed values. */
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
