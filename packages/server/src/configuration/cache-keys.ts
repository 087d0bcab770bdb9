/**
 * The one file of the service that spells Redis keys. They share the counters' prefix and layout version (the library's
 * `keys.ts`); a counter's key goes on with "{", so the two never meet.
 */

/** A hash: version, digest, createdAtMs, document. */
export const RULES_KEY = "sluice:1:config:rules";

/** Where a new version is announced; the message is its number. */
export const RULES_CHANNEL = "sluice:1:config:changed";
