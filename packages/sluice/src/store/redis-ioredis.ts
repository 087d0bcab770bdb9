/**
 * How ioredis gives what the store needs: a client that was handed in, or one that is made here from a URL.
 * What is made here fails fast: it queues nothing, resends nothing, and leaves waiting to the store's deadline.
 */
import type { ConnectionOptions } from "node:tls";
import { Cluster, Redis } from "ioredis";
import { clusterSlot } from "./cluster-slot.js";
import { changesOf, watchErrors } from "./redis-client-events.js";
import type { RedisConnection } from "./redis-connection.js";
import type { RedisTarget } from "./redis-url.js";

/** The part of an ioredis client that is used. */
export interface IoredisLike {
  readonly status: string;
  readonly isCluster?: boolean;
  /** Of a cluster. */
  nodes?(role: "master"): IoredisLike[];
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  connect?(): Promise<unknown>;
  on(event: string, listener: (error?: Error) => void): unknown;
  off(event: string, listener: (error?: Error) => void): unknown;
}

/** What a cluster has beside: the nodes of each slot, the leader first, and a way to ask for them anew. */
interface ClusterView {
  readonly slots?: readonly (readonly string[] | undefined)[];
  refreshSlotsCache?(callback: (error?: Error) => void): void;
}

export type TlsOptions = Pick<ConnectionOptions, "ca" | "cert" | "key" | "servername" | "rejectUnauthorized">;

/** A look at the map of slots is a connection and a command: not for every check that fails. */
const LOOK_EVERY_MS = 200;
const LEAVE_EVERY_MS = 500;

export function ioredisConnection(client: IoredisLike): RedisConnection {
  const errors = watchErrors(client);
  const sharded = client.isCluster === true;
  const view = client as ClusterView;
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  return {
    state() {
      if (client.status === "ready") return "ready";
      // A client made with lazyConnect waits to be asked.
      if (client.status === "wait") client.connect?.().catch(() => {});
      return client.status === "connecting" || client.status === "connect" ? "connecting" : "down";
    },
    changed: changesOf(client),
    sharded,
    nodeOf: (key) => (sharded ? (view.slots?.[clusterSlot(key)]?.[0] ?? "") : ""),
    lookAgain() {
      // ioredis looks when a node redirects or its connection breaks; a node that hangs does neither.
      if (!sharded || client.status !== "ready" || performance.now() - lookedAtMs < LOOK_EVERY_MS) return;
      lookedAtMs = performance.now();
      view.refreshSlotsCache?.(() => {});
    },
    send: (command, args) => client.call(command, ...args),
    sendToAll(command, args) {
      const nodes = sharded ? client.nodes!("master") : [client];
      return Promise.all(nodes.map((node) => node.call(command, ...args)));
    },
    close: async () => errors.stop(),
    lastError: errors.lastError,
  };
}

/** For the clients that we make. Never queues, never sends a command twice. */
const ownOptions = {
  enableOfflineQueue: false,
  // A command that was on its way when the connection broke may have been run: sent again it would count twice.
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 1_000,
  // A server that hangs does not answer a goodbye either.
  disconnectTimeout: 100,
  keepAlive: 5_000,
};

/** For a cluster: what ioredis would retry for seconds is answered by policy at once, and tried anew by the next check. */
const clusterOptions = {
  // Nodes are connected to when they are first needed, and what comes meanwhile waits, a second at most. Nothing is sent to a cluster
  // that is not connected as a whole: the store looks first.
  enableOfflineQueue: true,
  // A node that hangs is asked first now and then.
  slotsRefreshTimeout: 300,
  // 0 is "never": a command whose connection broke may have run.
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  retryDelayOnTryAgain: 1,
  // Enough for MOVED and then ASK. More than that means that a slot is on its way, which the store knows how to meet.
  maxRedirections: 2,
};

export interface OwnOptions {
  /** What a private authority or a client certificate needs, beside a rediss URL. */
  readonly tls?: TlsOptions | undefined;
  /** The longest pause between two attempts to connect: a Redis that is gone is tried no more often than a breaker would. */
  readonly retryMs?: number;
}

/** Makes a client of our own. It reconnects for ever. */
export function connectTo(target: RedisTarget, { tls = {}, retryMs = 500 }: OwnOptions): RedisConnection {
  const { username, password, db } = target;
  const retryStrategy = (attempt: number): number => Math.min(25 * 2 ** attempt, retryMs);
  const access = {
    ...ownOptions,
    retryStrategy,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(target.tls && { tls }),
  };
  const nodes = [...target.nodes];
  if (target.kind === "cluster") {
    const cluster = new Cluster(nodes, {
      ...clusterOptions,
      clusterRetryStrategy: retryStrategy,
      redisOptions: access,
    });
    return ownedConnection(cluster as unknown as IoredisLike, () => cluster.disconnect());
  }
  const client =
    target.kind === "sentinel"
      ? new Redis({
          ...access,
          db,
          name: target.master!,
          sentinels: nodes,
          sentinelRetryStrategy: retryStrategy,
          // A leader that was demoted keeps its connections too, and refuses writes: ask the Sentinels again.
          reconnectOnError: (error) => error.message.startsWith("READONLY"),
          ...(username !== undefined && { sentinelUsername: username }),
          ...(password !== undefined && { sentinelPassword: password }),
          ...(target.tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
        })
      : new Redis({ ...access, db, ...nodes[0]! });
  // ioredis tells that a database does not exist, and goes on in database 0: somebody else's counters. Then there is no connection.
  let noDatabase: Error | undefined;
  client.on("error", (error) => {
    if (!/DB index is out of range/.test(error.message)) return;
    noDatabase = error;
    client.disconnect();
  });
  const owned = ownedConnection(client as unknown as IoredisLike, () => client.disconnect());
  const connection = { ...owned, lastError: () => noDatabase ?? owned.lastError() };
  return target.kind === "sentinel" ? { ...connection, lookAgain: leavingHungLeader(client) } : connection;
}

function ownedConnection(client: IoredisLike, disconnect: () => void): RedisConnection {
  return { ...ioredisConnection(client), close: async () => disconnect() };
}

/**
 * A leader that hangs keeps its connections, also when another one leads by now: the connection is given up, and the Sentinels are asked.
 * Not by listening to them: each tells of the switch when it learns of it itself, up to seconds later, and a client that has found
 * the new leader would leave it again.
 */
function leavingHungLeader(client: Redis): (isHung: boolean) => void {
  let leftAtMs = Number.NEGATIVE_INFINITY;
  return (isHung) => {
    const isConnected = client.status === "ready" || client.status === "connect";
    if (!isHung || !isConnected || performance.now() - leftAtMs < LEAVE_EVERY_MS) return;
    leftAtMs = performance.now();
    client.disconnect(true);
  };
}
