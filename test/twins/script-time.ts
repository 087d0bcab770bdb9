/** The time that a script of the store used, by its reply: what its twin is asked at. */
import { FREED_KEY, KEY_PREFIX } from "../../packages/sluice/src/keys.js";
import { msOf } from "../../packages/sluice/src/store/redis/wire.js";

/** Undefined for what is no script about counters: notes of freed keys are sent when nobody waits, between any two others. */
export function scriptTimeOf(args: readonly (string | number)[], reply: unknown): number | undefined {
  const [, , firstKey] = args;
  return Array.isArray(reply) && firstKey !== KEY_PREFIX + FREED_KEY ? msOf(reply[0]) : undefined;
}
