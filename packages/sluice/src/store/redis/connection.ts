/**
 * The interface between the Redis store and its client. `ioredis.ts` and `node-redis.ts` implement it; only they and `client.ts` touch one.
 * Nothing behind it waits or retries: the store has a
 * deadline, and a command that a client keeps in a queue is late already.
 */
import { SluiceError } from "../../errors.js";
import type { ClientOptions } from "./client.js";
import { connectTo, type IoredisLike, ioredisConnection } from "./ioredis.js";
import { type NodeRedisLike, nodeRedisConnection } from "./node-redis.js";
import { parseRedisUrl } from "./url.js";

export type Argument = string | number;

export interface RedisConnection {
  /** `connecting` is worth waiting for, up to the deadline; `down` is not. */
  state(): "ready" | "connecting" | "down";
  /** Resolves at the next change of state. */
  changed(): Promise<void>;
  /** Whether keys live in slots, so that one script reaches only those of one tag. */
  readonly sharded: boolean;
  /** Which server a command with this key would go to now; "" where there is one. Nodes fail one by one. */
  nodeOf(key: string): string;
  /** Whether the node is being connected to for the first time: what is sent to it waits for this process, not for Redis. */
  isCold(node: string): boolean;
  /**
   * A node failed: its part may have a new leader by now. Looks, in the background. `unansweredSinceMonotonicMs`: a call that was sent then had
   * no answer, so the connection that it went over hangs.
   */
  lookAgain(unansweredSinceMonotonicMs?: number): void;
  /** Sends one command at once; on a cluster, to the node of its key. */
  send(command: string, args: readonly Argument[]): Promise<unknown>;
  /** Sends a command without a key to every node that takes writes. */
  sendToAll(command: string, args: readonly Argument[]): Promise<unknown>;
  /** Closes the connection, if it is ours. */
  close(): Promise<void>;
  /** When the connection that stands was made, by the monotonic clock. -Infinity for a cluster: its nodes are connected one by one. */
  connectedAtMonotonicMs(): number;
  /** The last error that the connection itself met: why it is down. */
  lastError(): Error | undefined;
}

export type RedisClient = IoredisLike | NodeRedisLike;

/** Takes a URL, or a client of ioredis or node-redis, single or cluster. A client that was handed in stays its owner's to close. */
export function redisConnection(target: string | RedisClient, own: ClientOptions = {}): RedisConnection {
  if (typeof target === "string") return connectTo(parseRedisUrl(target), own);
  if (typeof target === "object" && target !== null) {
    if ("call" in target && "status" in target) return ioredisConnection(target);
    if ("sendCommand" in target && "isOpen" in target) return nodeRedisConnection(target);
  }
  throw new SluiceError("invalid-setting", "store: expected a Redis URL, an ioredis client or a node-redis client");
}
