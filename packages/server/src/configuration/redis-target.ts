/** How a store's URL becomes an ioredis client: one server, Sentinel, or a cluster. The rule cache and monitoring use it. */
import { Cluster, Redis } from "ioredis";
import { SluiceError } from "sluice";

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
  const [, kind, rest] = /^redis\+(sentinel|cluster):\/\/(.+)$/.exec(url) ?? [];
  if (kind === undefined && /^rediss?:\/\//.test(url)) return new Redis(url, ALONE);
  const [, credentials, hosts, name] = /^(?:([^@/]*)@)?([^@/]+)(?:\/([^/]*))?$/.exec(rest ?? "") ?? [];
  if (kind === undefined || hosts === undefined) throw unknownTarget();
  const nodes = hosts.split(",").map((node) => nodeAt(node, kind === "sentinel" ? 26_379 : 6_379));
  const login = loginOf(credentials);
  if (kind === "sentinel") return new Redis({ ...ALONE, ...login, sentinels: nodes, name: name || "mymaster" });
  return new Cluster(nodes, {
    enableOfflineQueue: false,
    redisOptions: { ...PATIENCE, ...login },
    clusterRetryStrategy: retryStrategy,
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
  const parts = /^rediss?(?:\+(sentinel|cluster))?:\/\/(?:[^@/]*@)?([^@/]+)(?:\/([^/]*))?/.exec(url);
  if (parts === null) throw unknownTarget();
  const [, kind, hosts, name] = parts as unknown as [string, "sentinel" | "cluster" | undefined, string, string?];
  const addresses = hosts.split(",").map((host) => {
    const { host: named, port } = nodeAt(host, kind === "sentinel" ? 26_379 : 6_379);
    return `${named}:${port}`;
  });
  return { kind: kind ?? "single", addresses, ...(kind === "sentinel" && { master: name || "mymaster" }) };
}

/** A client for one node of a target, with the target's login, for what is asked of each node apart. It connects when first asked. */
export function connectNode(url: string, address: string): Redis {
  const colon = address.lastIndexOf(":");
  const node = { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
  const login = loginOf(/^[^/]*:\/\/([^@/]*)@/.exec(url)?.[1]);
  const db = Number(/^rediss?:\/\/[^/]+\/(\d+)/.exec(url)?.[1] ?? 0);
  const tls = url.startsWith("rediss") ? { tls: {} } : {};
  return new Redis({
    ...PATIENCE,
    retryStrategy,
    lazyConnect: true,
    enableReadyCheck: false,
    ...node,
    ...login,
    ...tls,
    db,
  });
}

function nodeAt(text: string, defaultPort: number): { host: string; port: number } {
  const [, host, port] = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(text) ?? [];
  if (host === undefined) throw unknownTarget();
  return { host: host.replace(/^\[|\]$/g, ""), port: port === undefined ? defaultPort : Number(port) };
}

function loginOf(credentials: string | undefined): { username?: string; password?: string } {
  if (credentials === undefined) return {};
  const at = credentials.indexOf(":");
  const username = decodeURIComponent(credentials.slice(0, at));
  return { ...(username !== "" && { username }), password: decodeURIComponent(credentials.slice(at + 1)) };
}

function unknownTarget(): SluiceError {
  return new SluiceError(
    "invalid-setting",
    "store: expected redis://host, rediss://host, redis+sentinel://h1,h2/master or redis+cluster://h1,h2",
  );
}
