/** The attributes under which Sluice's own rules see Envoy traffic: from a request's descriptors, or from a quota bucket's id. Pure. */
import type { Attributes } from "sluice";
import { setOwn } from "../../own-fields.js";
import { COUNTER_ATTRIBUTE, LIMIT_ATTRIBUTE } from "./envoy-rules.js";
import { LEASE_ENTRY } from "./give-back.js";

/**
 * The domain and every entry; the first wins if a key repeats. It is a single request: a rule by user must not charge it once per
 * descriptor that mentions the user.
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

/** `--region` is the region of a request that names none, as on the other transports. */
export function inRegion(attributes: Attributes, region: string | undefined): Attributes {
  return region === undefined || Object.hasOwn(attributes, "region") ? attributes : { ...attributes, region };
}
