/**
 * The one file of the service that builds Redis keys. They share the counters' prefix and layout version (the library's `keys.ts`); a
 * counter's key continues with "{", so they never collide.
 */
import { KEY_PREFIX } from "sluice/internal";

export interface RedisKeys {
  /** A hash: version, digest, createdAtMs, document. */
  readonly rules: string;
  /** Channel that announces a new version; the message is its number. */
  readonly rulesChannel: string;
  /** A hash: packed counts by series. */
  historyStep(step: string, startMs: number): string;
  sharedText(name: string): string;
  /** A sorted set with the names of all shared texts. */
  readonly sharedNames: string;
}

/** `prefix`: `--store-prefix`, which counters' keys start with too. */
export function redisKeys(prefix = ""): RedisKeys {
  const own = prefix + KEY_PREFIX;
  // A common hash tag keeps a script's keys, and those of a bulk read, on one cluster node.
  const history = `${own}history:{history}:`;
  return {
    rules: `${own}config:rules`,
    rulesChannel: `${own}config:changed`,
    historyStep: (step, startMs) => `${history}${step}:${startMs}`,
    sharedText: (name) => `${history}text:${name}`,
    sharedNames: `${history}names`,
  };
}
