/**
 * The service's own clients of the store's Redis, for the rule cache, the shared state, the history and the view of nodes. The library makes
 * them (`sluice/internal`), so that they connect exactly as the counters' client does.
 */
import { type Cluster, connectRedis, type Redis } from "sluice/internal";
import { parseRedisUrl } from "sluice/redis";

export type RedisClient = Redis | Cluster;
type RedisTarget = ReturnType<typeof parseRedisUrl>;

/** No command waits for ever: every caller has something to fall back on. */
const COMMAND_TIMEOUT_MS = 500;

/** `lazy`: connects when first asked. */
export function redisClient(
  target: string | RedisTarget,
  { lazy = false, timeoutMs = COMMAND_TIMEOUT_MS } = {},
): RedisClient {
  const parsed = typeof target === "string" ? parseRedisUrl(target) : target;
  const client = connectRedis(parsed, { commandTimeoutMs: timeoutMs, lazy });
  // Commands that fail tell their caller; an unheard "error" event would end the process.
  client.on("error", () => undefined);
  return client;
}
