/**
 * The one file of the service that spells Redis keys. They share the counters' prefix and layout version (the library's
 * `keys.ts`); a counter's key goes on with "{", so the two never meet.
 */
import { KEY_PREFIX } from "sluice/internal";

export interface RedisKeys {
  /** A hash: version, digest, createdAtMs, document. */
  readonly rules: string;
  /** Where a new version is announced; the message is its number. */
  readonly rulesChannel: string;
  /** A hash: packed counts by series. */
  historyStep(step: string, startMs: number): string;
  sharedText(name: string): string;
  /** A sorted set of the names of shared texts. */
  readonly sharedNames: string;
}

/** `prefix`: `--store-prefix`, which stands before the keys of counters, too. */
export function redisKeys(prefix = ""): RedisKeys {
  const own = prefix + KEY_PREFIX;
  // One hash tag: a script's keys, and a read of many, stay on one node of a cluster.
  const history = `${own}history:{history}:`;
  return {
    rules: `${own}config:rules`,
    rulesChannel: `${own}config:changed`,
    historyStep: (step, startMs) => `${history}${step}:${startMs}`,
    sharedText: (name) => `${history}text:${name}`,
    sharedNames: `${history}names`,
  };
}
