/**
 * The service's own clients of the store's Redis, for the rule cache, the shared state, the history and the view of nodes. The library makes
 * them (`sluice/internal`), so that they connect exactly as the counters' client does.
 */
import { type Cluster, connectRedis, type Redis } from "sluice/internal";
import { parseRedisUrl, type TlsOptions } from "sluice/redis";

export type RedisClient = Redis | Cluster;
type RedisTarget = ReturnType<typeof parseRedisUrl>;

/** No command waits for ever: every caller has something to fall back on. */
const COMMAND_TIMEOUT_MS = 500;

interface RedisClientOptions {
  /** Beside a rediss URL. */
  readonly tls?: TlsOptions;
  /** Connects when first asked. */
  readonly lazy?: boolean;
  readonly timeoutMs?: number;
}

export function redisClient(
  target: string | RedisTarget,
  { tls = {}, lazy = false, timeoutMs = COMMAND_TIMEOUT_MS }: RedisClientOptions = {},
): RedisClient {
  const parsed = typeof target === "string" ? parseRedisUrl(target) : target;
  const client = connectRedis(parsed, { tls, commandTimeoutMs: timeoutMs, lazy });
  // Commands that fail tell their caller; an unheard "error" event would end the process.
  client.on("error", () => undefined);
  return client;
}
