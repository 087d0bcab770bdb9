/**
 * What the Redis store needs of a client, and how ioredis and node-redis give it. Only files named redis-* touch a client.
 * Nothing here waits or retries: the store has a deadline, and a command that a client keeps in a queue is late already.
 */
import { Cluster, Redis } from "ioredis";
import { SluiceError } from "../errors.js";
import { parseRedisUrl, type RedisTarget } from "./redis-url.js";

export type Argument = string | number;

export interface RedisConnection {
  /** `connecting` is worth waiting for, up to the deadline; `down` is not. */
  state(): "ready" | "connecting" | "down";
  /** Resolves at the next change of state. */
  changed(): Promise<void>;
  /** Whether keys live in slots, so that one script reaches only those of one tag. */
  readonly sharded: boolean;
  /** Sends one command at once; on a cluster, to the node of its key. */
  send(command: string, args: readonly Argument[]): Promise<unknown>;
  /** Sends a command without a key to every node that takes writes. */
  sendToAll(command: string, args: readonly Argument[]): Promise<unknown>;
  /** Closes the connection, if it is ours. */
  close(): Promise<void>;
  /** The last error that the connection itself met: why it is down. */
  lastError(): Error | undefined;
}

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

/** The part of a node-redis client that is used. */
export interface NodeRedisLike {
  readonly isOpen: boolean;
  /** Absent on a cluster. */
  readonly isReady?: boolean;
  /** On a cluster the first key and whether the command only reads come first. */
  sendCommand(...args: never[]): Promise<unknown>;
  /** Of a cluster. */
  readonly masters?: readonly { client?: unknown }[];
  on(event: string, listener: (error?: Error) => void): unknown;
  off(event: string, listener: (error?: Error) => void): unknown;
}

export type RedisClient = IoredisLike | NodeRedisLike;

const STATE_EVENTS = ["ready", "close", "end", "reconnecting"] as const;

/** The next change of a client's state; all who wait share one set of listeners. */
function changesOf(client: RedisClient): () => Promise<void> {
  let next: Promise<void> | undefined;
  return () => {
    next ??= new Promise((resolve) => {
      const changed = (): void => {
        for (const event of STATE_EVENTS) client.off(event, changed);
        next = undefined;
        resolve();
      };
      for (const event of STATE_EVENTS) client.on(event, changed);
    });
    return next;
  };
}

/** Remembers a client's last error. Without a listener, an error of a client would end the process. */
function watchErrors(client: RedisClient): { lastError(): Error | undefined; stop(): void } {
  let lastError: Error | undefined;
  const listener = (error?: Error): void => {
    lastError = error;
  };
  client.on("error", listener);
  return { lastError: () => lastError, stop: () => client.off("error", listener) };
}

function ioredisConnection(client: IoredisLike): RedisConnection {
  const errors = watchErrors(client);
  return {
    state() {
      if (client.status === "ready") return "ready";
      // A client made with lazyConnect waits to be asked.
      if (client.status === "wait") client.connect?.().catch(() => {});
      return client.status === "connecting" || client.status === "connect" ? "connecting" : "down";
    },
    changed: changesOf(client),
    sharded: client.isCluster === true,
    send: (command, args) => client.call(command, ...args),
    sendToAll(command, args) {
      const nodes = client.isCluster === true ? client.nodes!("master") : [client];
      return Promise.all(nodes.map((node) => node.call(command, ...args)));
    },
    close: async () => errors.stop(),
    lastError: errors.lastError,
  };
}

type SendToNode = (args: string[]) => Promise<unknown>;
type SendToCluster = (firstKey: string | undefined, isReadonly: boolean, args: string[]) => Promise<unknown>;

function nodeRedisConnection(client: NodeRedisLike): RedisConnection {
  const errors = watchErrors(client);
  const sharded = client.masters !== undefined;
  const spelled = (command: string, args: readonly Argument[]): string[] => [command, ...args.map(String)];
  const send = (node: NodeRedisLike, words: string[]): Promise<unknown> =>
    (node.sendCommand as unknown as SendToNode).call(node, words);
  return {
    // node-redis does not tell a first connection from a lost one; while it is open, the deadline bounds the wait. A cluster of
    // it tells nothing at all: it is asked, and the deadline bounds that too.
    state: () => (client.isReady || (sharded && client.isOpen) ? "ready" : client.isOpen ? "connecting" : "down"),
    changed: changesOf(client),
    sharded,
    send(command, args) {
      if (!sharded) return send(client, spelled(command, args));
      return (client.sendCommand as unknown as SendToCluster).call(
        client,
        firstKey(command, args),
        false,
        spelled(command, args),
      );
    },
    async sendToAll(command, args) {
      const nodes = sharded ? await Promise.all(client.masters!.map(({ client }) => client)) : [client];
      return await Promise.all(nodes.map((node) => send(node as NodeRedisLike, spelled(command, args))));
    },
    close: async () => errors.stop(),
    lastError: errors.lastError,
  };
}

/** Of the commands that the store sends. */
function firstKey(command: string, args: readonly Argument[]): string {
  return String(command.startsWith("EVAL") ? args[2] : args[0]);
}

/** For the clients that we make. Reconnects for ever, quickly; never queues, never sends a command twice. */
const ownOptions = {
  enableOfflineQueue: false,
  // A command that was on its way when the connection broke may have been run: sent again it would count twice.
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 1_000,
  retryStrategy: (attempt: number): number => Math.min(25 * 2 ** attempt, 500),
  keepAlive: 5_000,
};

function connect(target: RedisTarget): RedisConnection {
  const { username, password, db } = target;
  const access = {
    ...ownOptions,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(target.tls && { tls: {} }),
  };
  const nodes = [...target.nodes];
  if (target.kind === "cluster") {
    const cluster = new Cluster(nodes, {
      redisOptions: access,
      enableOfflineQueue: false,
      clusterRetryStrategy: ownOptions.retryStrategy,
      slotsRefreshTimeout: 1_000,
      retryDelayOnFailover: 50,
      retryDelayOnClusterDown: 50,
    });
    return { ...ioredisConnection(cluster), close: async () => cluster.disconnect() };
  }
  const client =
    target.kind === "sentinel"
      ? new Redis({
          ...access,
          db,
          name: target.master!,
          sentinels: nodes,
          sentinelRetryStrategy: ownOptions.retryStrategy,
          ...(password !== undefined && { sentinelPassword: password }),
        })
      : new Redis({ ...access, db, ...nodes[0]! });
  return { ...ioredisConnection(client), close: async () => client.disconnect() };
}

/** Takes a URL, or a client of ioredis or node-redis, single or cluster. A client that was handed in stays its owner's to close. */
export function redisConnection(target: string | RedisClient): RedisConnection {
  if (typeof target === "string") return connect(parseRedisUrl(target));
  if (typeof target === "object" && target !== null) {
    if ("call" in target && "status" in target) return ioredisConnection(target);
    if ("sendCommand" in target && "isOpen" in target) return nodeRedisConnection(target);
  }
  throw new SluiceError("invalid-setting", "store: expected a Redis URL, an ioredis client or a node-redis client");
}
