/** How a store's URL becomes an ioredis client: one server, Sentinel, or a cluster. The rule cache and monitoring use it. */
import { Cluster, Redis } from "ioredis";
import { parseRedisUrl } from "sluice/redis";

/** No command waits for ever: whoever asks has a database to fall back on. */
const PATIENCE = {
  maxRetriesPerRequest: 0,
  connectTimeout: 1_000,
  commandTimeout: 500,
  keepAlive: 5_000,
};
const retryStrategy = (attempt: number) => Math.min(50 * 2 ** attempt, 500);
/** Nothing is queued while Redis is away. */
const ALONE = { ...PATIENCE, enableOfflineQueue: false, retryStrategy };

export type RedisTarget = Redis | Cluster;

export function connectRedis(url: string): RedisTarget {
  const target = parseRedisUrl(url);
  const { username, password } = target;
  const login = { ...(username !== undefined && { username }), ...(password !== undefined && { password }) };
  const tls = target.tls ? { tls: {} } : {};
  const nodes = [...target.nodes];
  if (target.kind === "cluster") {
    return new Cluster(nodes, {
      enableOfflineQueue: false,
      redisOptions: { ...PATIENCE, ...login, ...tls },
      clusterRetryStrategy: retryStrategy,
    });
  }
  if (target.kind === "single") return new Redis({ ...ALONE, ...login, ...tls, ...nodes[0]!, db: target.db });
  return new Redis({
    ...ALONE,
    ...login,
    ...tls,
    db: target.db,
    sentinels: nodes,
    name: target.master!,
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    ...(target.tls && { sentinelTLS: {}, enableTLSForSentinelMode: true }),
  });
}

/** Where a target's nodes can be asked for. */
export interface RedisSeeds {
  readonly kind: "single" | "sentinel" | "cluster";
  readonly addresses: readonly string[];
  /** Sentinel's name of the master. */
  readonly master?: string;
}

export function redisSeeds(url: string): RedisSeeds {
  const { kind, nodes, master } = parseRedisUrl(url);
  const addresses = nodes.map(({ host, port }) => `${host}:${port}`);
  return { kind, addresses, ...(master !== undefined && { master }) };
}

/** A client for one node of a target, with the target's login, for what is asked of each node apart. It connects when first asked. */
export function connectNode(url: string, address: string): Redis {
  const colon = address.lastIndexOf(":");
  const node = { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
  const { username, password, db, tls } = parseRedisUrl(url);
  return new Redis({
    ...PATIENCE,
    retryStrategy,
    lazyConnect: true,
    enableReadyCheck: false,
    ...node,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: {} }),
    db,
  });
}
