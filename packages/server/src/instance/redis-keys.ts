/**
 * The one file of the service that spells Redis keys. They share the counters' prefix and layout version (the library's
 * `keys.ts`); a counter's key goes on with "{", so the two never meet.
 */

/** A hash: version, digest, createdAtMs, document. */
export const RULES_KEY = "sluice:1:config:rules";

/** Where a new version is announced; the message is its number. */
export const RULES_CHANNEL = "sluice:1:config:changed";

/** Counts and state that all instances share. One hash tag: a script's keys, and a read of many, stay on one node of a cluster. */
const HISTORY = "sluice:1:history:{history}:";

/** A hash: packed counts by series. */
export function historyStepKey(step: string, startMs: number): string {
  return `${HISTORY}${step}:${startMs}`;
}

export function sharedTextKey(name: string): string {
  return `${HISTORY}text:${name}`;
}

/** A sorted set of the names of shared texts. */
export const sharedNamesKey = `${HISTORY}names`;
