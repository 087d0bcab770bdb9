/**
 * The interface between the Redis store and its client. `ioredis.ts` and `node-redis.ts` implement it; only they and `client.ts` touch a
 * client. Implementations neither wait nor retry: the store has a deadline, and a command that sits in a client's queue is already late.
 */
import { SluiceError } from "../../errors.js";
import type { ClientOptions } from "./client.js";
import { connectTo, type IoredisLike, ioredisConnection } from "./ioredis.js";
import { type NodeRedisLike, nodeRedisConnection } from "./node-redis.js";
import { parseRedisUrl } from "./url.js";

export type Argument = string | number;

export interface RedisConnection {
  /** `connecting` is worth waiting for, until the deadline; `down` is not. */
  state(): "ready" | "connecting" | "down";
  /** Resolves at the next state change. */
  changed(): Promise<void>;
  /** Whether keys live in slots, so that one script reaches only the keys of one hash tag. */
  readonly sharded: boolean;
  /** The server that a command with this key would go to now; "" if there is only one. Nodes fail individually. */
  nodeOf(key: string): string;
  /** Whether the node is being connected to for the first time: what is sent to it waits for this process, not for Redis. */
  isCold(node: string): boolean;
  /**
   * A node failed, so its slots may have a new leader by now: refreshes the view in the background. `unansweredSinceMonotonicMs`: a call
   * sent then got no answer, so its connection hangs.
   */
  lookAgain(unansweredSinceMonotonicMs?: number): void;
  /** Sends one command at once; on a cluster, to its key's node. */
  send(command: string, args: readonly Argument[]): Promise<unknown>;
  /** Sends a command without a key to every node that accepts writes. */
  sendToAll(command: string, args: readonly Argument[]): Promise<unknown>;
  /** Closes the connection, if it is ours. */
  close(): Promise<void>;
  /** When the current connection was made, on the monotonic clock. -Infinity for a cluster, whose nodes connect individually. */
  connectedAtMonotonicMs(): number;
  /** The last error of the connection itself, which explains why it is down. */
  lastError(): Error | undefined;
}

export type RedisClient = IoredisLike | NodeRedisLike;

/** Takes a URL, or an ioredis or node-redis client, single or cluster. A client that was passed in is closed by its owner. */
export function redisConnection(target: string | RedisClient, own: ClientOptions = {}): RedisConnection {
  if (typeof target === "string") return connectTo(parseRedisUrl(target), own);
  if (typeof target === "object" && target !== null) {
    if ("call" in target && "status" in target) return ioredisConnection(target);
    if ("sendCommand" in target && "isOpen" in target) return nodeRedisConnection(target);
  }
  throw new SluiceError("invalid-setting", "store: expected a Redis URL, an ioredis client or a node-redis client");
}
