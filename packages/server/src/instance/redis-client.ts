/**
 * The service's own clients of the store's Redis, for the rule cache, shared state, history and node view. The library creates them
 * (`sluice/internal`), so that they connect exactly like the counters' client.
 */
import { type Cluster, connectRedis, type Redis } from "sluice/internal";
import { parseRedisUrl, type TlsOptions } from "sluice/redis";

export type RedisClient = Redis | Cluster;
type RedisTarget = ReturnType<typeof parseRedisUrl>;

/** Bounds every command: each caller has a fallback. */
const COMMAND_TIMEOUT_MS = 500;

interface RedisClientOptions {
  /** In addition to a rediss URL. */
  readonly tls?: TlsOptions;
  /** Connects on first use. */
  readonly lazy?: boolean;
  readonly timeoutMs?: number;
}

export function redisClient(
  target: string | RedisTarget,
  { tls = {}, lazy = false, timeoutMs = COMMAND_TIMEOUT_MS }: RedisClientOptions = {},
): RedisClient {
  const parsed = typeof target === "string" ? parseRedisUrl(target) : target;
  const client = connectRedis(parsed, { tls, commandTimeoutMs: timeoutMs, lazy });
  // Failed commands report to their callers; an unhandled "error" event would crash the process.
  client.on("error", () => undefined);
  return client;
}
