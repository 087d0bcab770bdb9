/**
 * Makes a Redis client from a store's URL: one server, a set watched by Sentinels, or a cluster. The only place that makes one, for the
 * library and for the service (`sluice/internal`), so that every client fails fast, closes silent connections, and never touches a
 * database that the URL does not name.
 */
import type { ConnectionOptions } from "node:tls";
import { Cluster, Redis } from "ioredis";
import { giveUpWhenSilent } from "./heartbeat.js";
import type { RedisTarget } from "./url.js";

export type TlsOptions = Pick<ConnectionOptions, "ca" | "cert" | "key" | "servername" | "rejectUnauthorized">;

export interface ClientOptions {
  /** Options for a private authority or a client certificate, beside a rediss URL. */
  readonly tls?: TlsOptions | undefined;
  /** The longest pause between two attempts to connect: a Redis that is gone is tried no more often than a breaker would. */
  readonly retryMs?: number;
  /** The interval of the heartbeat. A silent connection is closed one to two beats later. */
  readonly heartbeatMs?: number;
  /** Absent: the caller has a deadline of its own. */
  readonly commandTimeoutMs?: number;
  /** Connects when first asked. */
  readonly lazy?: boolean;
}

/** Never queues, never sends a command twice. */
const failFast = {
  enableOfflineQueue: false,
  // A command that was on its way when the connection broke may have been run: sent again it would count twice.
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 1_000,
  // A server that hangs does not answer a goodbye either.
  disconnectTimeout: 100,
  keepAlive: 5_000,
  // The first command's answer carries the reason why a server turns a client away (maxclients); ioredis drops the errors of this one.
  disableClientInfo: true,
  // ioredis awaits nothing that it sends by itself: a connection that breaks again at once would end the process. Subscribers do it on `ready`.
  autoResubscribe: false,
  // ioredis would wait in silence while Redis loads its data; without this check Redis itself answers LOADING.
  enableReadyCheck: false,
};

/** For a cluster: what ioredis would retry for seconds is answered by policy at once, and tried anew by the next check. */
const clusterOptions = {
  // Commands to a node that is still connecting wait there, a second at most. See FailFastCluster for all nodes.
  enableOfflineQueue: true,
  // ioredis sometimes asks a node that hangs first.
  slotsRefreshTimeout: 300,
  // 0 is "never": a command whose connection broke may have run.
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  retryDelayOnTryAgain: 1,
  // Enough for MOVED and then ASK. More than that means that a slot is on its way, which the store knows how to meet.
  maxRedirections: 2,
};

/** A Sentinel that hangs must not keep the client from asking the others. */
const SENTINEL_TIMEOUT_MS = 500;

/**
 * Queues nothing while the cluster as a whole is away: ioredis would keep it until the cluster is back, and run it then. Its own switch
 * (`enableOfflineQueue`) would also drop what is sent to a single node that is still being connected to.
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
    // Commands before the first connection have to wait somewhere.
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
    // A leader is connected to before it is needed: the first burst of a cold process would wait for it. Not before the cluster has
    // answered: one that is gone would be tried twice an interval.
    cluster.on("refresh", () => {
      for (const node of cluster.nodes("master")) if (node.status === "wait") node.connect().catch(() => {});
    });
    return cluster;
  }
  const client =
    target.kind === "single"
      ? // With a database to select, the check keeps a client that could not select it from ever being ready.
        new Redis({ ...access, db, enableReadyCheck: db !== 0, maxLoadingRetryTime: retryMs, ...nodes[0]! })
      : new Redis({
          ...access,
          db,
          name: target.master!,
          sentinels: nodes,
          sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
          sentinelRetryStrategy: retryStrategy,
          // The check also sees whether the server leads; if not, another Sentinel is asked.
          enableReadyCheck: true,
          maxLoadingRetryTime: retryMs,
          // A leader that was demoted keeps its connections too, and refuses writes: ask the Sentinels again.
          reconnectOnError: (error) => error.message.startsWith("READONLY"),
          ...(username !== undefined && { sentinelUsername: username }),
          ...(password !== undefined && { sentinelPassword: password }),
          ...(target.tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
        });
  // ioredis reports that a database does not exist, and goes on in database 0, which holds somebody else's data: disconnect.
  client.on("error", (error) => {
    if (isNoDatabase(error)) client.disconnect(true);
  });
  giveUpWhenSilent(client, heartbeatMs);
  return client;
}

function isNoDatabase(error: Error): boolean {
  return /DB index is out of range|invalid DB index/.test(error.message);
}
