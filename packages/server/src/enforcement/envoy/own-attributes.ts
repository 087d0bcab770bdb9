/** The attributes that Sluice's own rules see of Envoy's traffic: descriptors of a request, or the id of a quota bucket. Pure. */
import type { Attributes } from "sluice";
import { setOwn } from "../../own-fields.js";
import { COUNTER_ATTRIBUTE, LIMIT_ATTRIBUTE } from "./envoy-rules.js";
import { LEASE_ENTRY } from "./give-back.js";

/**
 * The domain and every entry, the first where a key comes twice. The request is one request: a rule by user must not charge it once for
 * each descriptor that mentions the user.
 */
export function ownAttributes(
  domain: string,
  descriptors: readonly { readonly entries: readonly { readonly key: string; readonly value: string }[] }[],
): Attributes {
  // A plain object: those without a prototype are slow to read.
  const attributes: Record<string, string> = { domain };
  for (const { entries } of descriptors) {
    for (const { key, value } of entries) {
      if (key === LIMIT_ATTRIBUTE || key === COUNTER_ATTRIBUTE || key === LEASE_ENTRY || Object.hasOwn(attributes, key))
        continue;
      setOwn(attributes, key, value);
    }
  }
  return attributes;
}
