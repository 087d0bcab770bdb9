/**
 * A digest of the request that an id was sent with: its attributes, its cost, and whether it is a charge. Rules and counters are left out:
 * a retry must not become invalid because a rule was edited meanwhile. All attributes are included, because which ones matter depends on
 * the rules. Pure.
 */
import { createHash } from "node:crypto";
import type { Attributes } from "../rules/rule.js";

interface Sent {
  readonly attributes: Attributes;
  readonly cost?: number | undefined;
  readonly charge?: boolean | undefined;
}

/** 128 bits: a deliberate collision would let the second request pass uncounted. */
const LENGTH = 22;

export function fingerprintOf(sent: readonly Sent[]): string {
  const hash = createHash("sha256");
  for (const { attributes, cost = null, charge = false } of sent) {
    hash.update(`${JSON.stringify([cost, charge, textsOf(attributes)])}\n`);
  }
  return hash.digest("base64url").slice(0, LENGTH);
}

/** Names and values, sorted by name, as rules read them: 42 equals "42", and anything but text, numbers and booleans is absent. */
function textsOf(attributes: Attributes): string[] {
  const texts: string[] = [];
  for (const name of Object.keys(attributes).sort()) {
    const value: unknown = attributes[name];
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      texts.push(name, String(value));
  }
  return texts;
}
