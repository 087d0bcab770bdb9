/**
 * What the Redis store needs of a client, and how ioredis and node-redis give it. Only files named redis-* touch a client.
 * Nothing here waits or retries: the store has a deadline, and a command that a client keeps in a queue is late already.
 */
import { Redis } from "ioredis";
import { SluiceError } from "../errors.js";

export type Argument = string | number;

export interface RedisConnection {
  /** `connecting` is worth waiting for, up to the deadline; `down` is not. */
  state(): "ready" | "connecting" | "down";
  /** Resolves at the next change of state. */
  changed(): Promise<void>;
  /** Sends one command at once. */
  send(command: string, args: readonly Argument[]): Promise<unknown>;
  /** Closes the connection, if it is ours. */
  close(): Promise<void>;
  /** The last error that the connection itself met: why it is down. */
  lastError(): Error | undefined;
}

/** The part of an ioredis client that is used. */
export interface IoredisLike {
  readonly status: string;
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  on(event: string, listener: (error?: Error) => void): unknown;
  off(event: string, listener: (error?: Error) => void): unknown;
}

/** The part of a node-redis client that is used. */
export interface NodeRedisLike {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  sendCommand(args: string[]): Promise<unknown>;
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
      return client.status === "connecting" || client.status === "connect" ? "connecting" : "down";
    },
    changed: changesOf(client),
    send: (command, args) => client.call(command, ...args),
    close: async () => errors.stop(),
    lastError: errors.lastError,
  };
}

function nodeRedisConnection(client: NodeRedisLike): RedisConnection {
  const errors = watchErrors(client);
  return {
    // node-redis does not tell a first connection from a lost one; while it is open, the deadline bounds the wait.
    state: () => (client.isReady ? "ready" : client.isOpen ? "connecting" : "down"),
    changed: changesOf(client),
    send: (command, args) => client.sendCommand([command, ...args.map(String)]),
    close: async () => errors.stop(),
    lastError: errors.lastError,
  };
}

/** Connects by URL. Reconnects for ever, quickly; never queues, never sends a command twice. */
function connect(url: string): RedisConnection {
  const client = new Redis(url, {
    enableOfflineQueue: false,
    // A command that was on its way when the connection broke may have been run: sent again it would count twice.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 1_000,
    retryStrategy: (attempt) => Math.min(25 * 2 ** attempt, 500),
    keepAlive: 5_000,
  });
  return { ...ioredisConnection(client), close: async () => client.disconnect() };
}

/** Takes a URL, an ioredis client or a node-redis client. A client that was handed in stays its owner's to close. */
export function redisConnection(target: string | RedisClient): RedisConnection {
  if (typeof target === "string") {
    if (!/^rediss?:\/\//.test(target)) {
      throw new SluiceError(
        "invalid-setting",
        `store: expected a URL such as "redis://127.0.0.1:6379", got ${JSON.stringify(target)}`,
      );
    }
    return connect(target);
  }
  if (typeof target === "object" && target !== null) {
    if ("call" in target && "status" in target) return ioredisConnection(target);
    if ("sendCommand" in target && "isReady" in target) return nodeRedisConnection(target);
  }
  throw new SluiceError("invalid-setting", "store: expected a Redis URL, an ioredis client or a node-redis client");
}
