/**
 * A digest of the request that an id was sent with: attributes, cost, and whether it is a charge. Rules and counters are not part of it:
 * a retry must not become a mistake because a rule was edited meanwhile. All attributes are, because which of them matter depends
 * on the rules. Pure.
 */
import { createHash } from "node:crypto";
import type { Attributes } from "../rules/rule.js";

interface Sent {
  readonly attributes: Attributes;
  readonly cost?: number | undefined;
  readonly charge?: boolean | undefined;
}

/** 128 bits: two requests with one fingerprint, made on purpose, would let the second pass uncounted. */
const LENGTH = 22;

export function fingerprintOf(sent: readonly Sent[]): string {
  const hash = createHash("sha256");
  for (const { attributes, cost = null, charge = false } of sent) {
    hash.update(`${JSON.stringify([cost, charge, textsOf(attributes)])}\n`);
  }
  return hash.digest("base64url").slice(0, LENGTH);
}

/** Names and values in the order of the names. As rules read them: 42 is "42", and what is neither text, number nor boolean is absent. */
function textsOf(attributes: Attributes): string[] {
  const texts: string[] = [];
  for (const name of Object.keys(attributes).sort()) {
    const value: unknown = attributes[name];
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      texts.push(name, String(value));
  }
  return texts;
}
