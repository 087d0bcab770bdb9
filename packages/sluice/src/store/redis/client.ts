/**
 * Makes a Redis client from a store's URL: one server, a set watched by Sentinels, or a cluster. The only place that makes clients, for the
 * library and for the service (`sluice/internal`), so that every client fails fast, closes silent connections, and never touches a database
 * that the URL does not name.
 */
import type { ConnectionOptions } from "node:tls";
import { Cluster, Redis } from "ioredis";
import { giveUpWhenSilent } from "./heartbeat.js";
import type { RedisTarget } from "./url.js";

export type TlsOptions = Pick<ConnectionOptions, "ca" | "cert" | "key" | "servername" | "rejectUnauthorized">;

export interface ClientOptions {
  /** TLS options for a rediss URL: a private certificate authority or a client certificate. */
  readonly tls?: TlsOptions | undefined;
  /** The longest backoff between connection attempts: a Redis that is gone is tried no more often than a circuit breaker would. */
  readonly retryMs?: number;
  /** The heartbeat interval. A silent connection is closed one to two beats later. */
  readonly heartbeatMs?: number;
  /** Absent if the caller has its own deadline. */
  readonly commandTimeoutMs?: number;
  /** Connects on first use. */
  readonly lazy?: boolean;
}

/** Never queues, and never sends a command twice. */
const failFast = {
  enableOfflineQueue: false,
  // A command in flight when the connection broke may have run: sent again, it would count twice.
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 1_000,
  // A server that hangs does not answer QUIT either.
  disconnectTimeout: 100,
  keepAlive: 5_000,
  // If a server turns a client away (maxclients), the first command's reply carries the reason; ioredis drops the errors of this one.
  disableClientInfo: true,
  // ioredis does not handle rejections of commands that it sends by itself: a connection that breaks again at once would end the process.
  // Subscribers resubscribe on `ready` instead.
  autoResubscribe: false,
  // ioredis would wait silently while Redis loads its data; without this check Redis itself answers LOADING.
  enableReadyCheck: false,
};

/** For a cluster: where ioredis would retry for seconds, a failure policy answers at once, and the next check tries again. */
const clusterOptions = {
  // Commands to a node that is still connecting wait there, a second at most. FailFastCluster covers the case of all nodes.
  enableOfflineQueue: true,
  // ioredis may happen to ask a hung node first.
  slotsRefreshTimeout: 300,
  // 0 means never: a command whose connection broke may have run.
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  retryDelayOnTryAgain: 1,
  // Enough for MOVED and then ASK. More means that a slot is being migrated, which the store handles itself.
  maxRedirections: 2,
};

/** A hung Sentinel must not keep the client from asking the others. */
const SENTINEL_TIMEOUT_MS = 500;

/**
 * Queues nothing while the whole cluster is away: ioredis would keep the commands and run them once the cluster is back. Its own switch
 * (`enableOfflineQueue`) would also drop commands to a single node that is still connecting.
 */
class FailFastCluster extends Cluster {
  override sendCommand(...args: Parameters<Cluster["sendCommand"]>): unknown {
    const [command] = args;
    if (this.status === "ready" || this.status === "connect") return super.sendCommand(...args);
    command.reject(new Error("Connection is closed."));
    return command.promise;
  }
}

export function connectRedis(target: RedisTarget, options: ClientOptions = {}): Redis | Cluster {
  const { tls = {}, retryMs = 500, heartbeatMs = 1_000, commandTimeoutMs, lazy = false } = options;
  const { username, password, db } = target;
  const retryStrategy = (attempt: number): number => Math.min(25 * 2 ** attempt, retryMs);
  const access = {
    ...failFast,
    retryStrategy,
    ...(commandTimeoutMs !== undefined && { commandTimeout: commandTimeoutMs }),
    // Commands before the first connection have to be queued.
    ...(lazy && { lazyConnect: true, enableOfflineQueue: true }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(target.tls && { tls }),
  };
  const nodes = [...target.nodes];
  if (target.kind === "cluster") {
    const cluster = new FailFastCluster(nodes, {
      ...clusterOptions,
      clusterRetryStrategy: retryStrategy,
      redisOptions: access,
    });
    cluster.on("+node", (node: Redis) => giveUpWhenSilent(node, heartbeatMs));
    // Connect to each leader before it is needed: the first burst of a cold process would otherwise wait for it. Not before the cluster has
    // answered: one that is gone would be tried twice per interval.
    cluster.on("refresh", () => {
      for (const node of cluster.nodes("master")) if (node.status === "wait") node.connect().catch(() => {});
    });
    return cluster;
  }
  const client =
    target.kind === "single"
      ? // With a database to select, this check keeps a client that could not select it from becoming ready.
        new Redis({ ...access, db, enableReadyCheck: db !== 0, maxLoadingRetryTime: retryMs, ...nodes[0]! })
      : new Redis({
          ...access,
          db,
          name: target.master!,
          sentinels: nodes,
          sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
          sentinelRetryStrategy: retryStrategy,
          // This check also verifies that the server is the leader; if not, another Sentinel is asked.
          enableReadyCheck: true,
          maxLoadingRetryTime: retryMs,
          // A demoted leader also keeps its connections, and refuses writes: ask the Sentinels again.
          reconnectOnError: (error) => error.message.startsWith("READONLY"),
          ...(username !== undefined && { sentinelUsername: username }),
          ...(password !== undefined && { sentinelPassword: password }),
          ...(target.tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
        });
  // If a database does not exist, ioredis only reports it and carries on in database 0, which holds someone else's data: disconnect.
  client.on("error", (error) => {
    if (isNoDatabase(error)) client.disconnect(true);
  });
  giveUpWhenSilent(client, heartbeatMs);
  return client;
}

function isNoDatabase(error: Error): boolean {
  return /DB index is out of range|invalid DB index/.test(error.message);
}
