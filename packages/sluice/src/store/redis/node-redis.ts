/**
 * A store's connection through a node-redis client, single or cluster. Its owner connects and closes it.
 */

import { changesOf, coldStartOf, watchClient } from "./client-events.js";
import { clusterSlot } from "./cluster/cluster-slot.js";
import type { Argument, RedisConnection } from "./connection.js";

/** The part of a node-redis client that is used. */
export interface NodeRedisLike {
  readonly isOpen: boolean;
  /** Absent on a cluster. */
  readonly isReady?: boolean;
  /** On a cluster, the first key and a read-only flag come first. */
  sendCommand(...args: never[]): Promise<unknown>;
  /** Only on a cluster. */
  readonly masters?: readonly { client?: unknown }[];
  /** Only on a cluster: by slot. */
  readonly slots?: readonly { master?: { address?: string } }[];
  on(event: string, listener: (error?: Error) => void): unknown;
  off(event: string, listener: (error?: Error) => void): unknown;
}

type SendToNode = (args: string[]) => Promise<unknown>;
type SendToCluster = (firstKey: string | undefined, isReadonly: boolean, args: string[]) => Promise<unknown>;

export function nodeRedisConnection(client: NodeRedisLike): RedisConnection {
  const watch = watchClient(client);
  const sharded = client.masters !== undefined;
  const spelled = (command: string, args: readonly Argument[]): string[] => [command, ...args.map(String)];
  const send = (node: NodeRedisLike, words: string[]): Promise<unknown> =>
    (node.sendCommand as unknown as SendToNode).call(node, words);
  return {
    // node-redis does not distinguish a first connection from a lost one; while it is open, the deadline bounds the wait. Its cluster
    // client has no state at all: calls are sent, and the deadline bounds them too.
    state: () => (client.isReady || (sharded && client.isOpen) ? "ready" : client.isOpen ? "connecting" : "down"),
    changed: changesOf(client),
    sharded,
    nodeOf: (key) => (sharded ? (client.slots?.[clusterSlot(key)]?.master?.address ?? "") : ""),
    // The cluster client reports nothing about its nodes.
    isCold: sharded ? () => false : coldStartOf(client),
    // It refreshes by itself when a node redirects or its connection breaks.
    lookAgain() {},
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
    close: async () => watch.stop(),
    lastError: watch.lastError,
    connectedAtMonotonicMs: sharded ? () => Number.NEGATIVE_INFINITY : watch.connectedAtMonotonicMs,
  };
}

/** Of the commands that the store sends. */
function firstKey(command: string, args: readonly Argument[]): string {
  return String(command.startsWith("EVAL") ? args[2] : args[0]);
}
