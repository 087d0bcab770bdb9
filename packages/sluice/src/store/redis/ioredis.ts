/**
 * A store's connection through ioredis: a client that was passed in, or one made from a URL (`client.ts`). A client that was passed in
 * keeps its owner's settings, including whether it closes a silent connection (`socketTimeout`).
 */
import type { Redis } from "ioredis";
import { SluiceError } from "../../errors.js";
import { type ClientOptions, connectRedis } from "./client.js";
import { changesOf, coldStartOf, watchClient } from "./client-events.js";
import { clusterSlot } from "./cluster/cluster-slot.js";
import type { RedisConnection } from "./connection.js";
import type { RedisTarget } from "./url.js";

/** The part of an ioredis client that is used. */
export interface IoredisLike {
  readonly status: string;
  readonly isCluster?: boolean;
  readonly options?: { readonly keyPrefix?: unknown };
  /** Only on a cluster. */
  nodes?(role: "master"): IoredisLike[];
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  connect?(): Promise<unknown>;
  on(event: string, listener: (error?: Error) => void): unknown;
  off(event: string, listener: (error?: Error) => void): unknown;
}

/** Members of a cluster client: the nodes of each slot, leader first, and a way to refresh them. */
interface ClusterView {
  readonly slots?: readonly (readonly string[] | undefined)[];
  refreshSlotsCache?(callback: (error?: Error) => void): void;
}

/** Refreshing the slot map takes a connection and a command: not for every check that fails. */
const LOOK_EVERY_MS = 200;

export function ioredisConnection(client: IoredisLike): RedisConnection {
  const watch = watchClient(client);
  const sharded = client.isCluster === true;
  if (sharded && client.options?.keyPrefix) throw prefixedCluster();
  const view = client as ClusterView;
  let lookedAtMonotonicMs = Number.NEGATIVE_INFINITY;
  return {
    state() {
      if (client.status === "ready") return "ready";
      // A client made with lazyConnect connects on request.
      if (client.status === "wait") client.connect?.().catch(() => {});
      return client.status === "connecting" || client.status === "connect" ? "connecting" : "down";
    },
    changed: changesOf(client),
    sharded,
    nodeOf: (key) => (sharded ? (view.slots?.[clusterSlot(key)]?.[0] ?? "") : ""),
    isCold: coldStartOf(client),
    lookAgain() {
      // ioredis refreshes when a node redirects or its connection breaks; a hung node does neither.
      if (!sharded || client.status !== "ready" || performance.now() - lookedAtMonotonicMs < LOOK_EVERY_MS) return;
      lookedAtMonotonicMs = performance.now();
      view.refreshSlotsCache?.(() => {});
    },
    send: (command, args) => client.call(command, ...args),
    sendToAll(command, args) {
      const nodes = sharded ? client.nodes!("master") : [client];
      return Promise.all(nodes.map((node) => node.call(command, ...args)));
    },
    close: async () => watch.stop(),
    lastError: watch.lastError,
    connectedAtMonotonicMs: sharded ? () => Number.NEGATIVE_INFINITY : watch.connectedAtMonotonicMs,
  };
}

/** Scripts over several slots pass keys that the client does not recognise as keys (cross-slot.lua): it would prefix only some of them. */
function prefixedCluster(): SluiceError {
  const message = "store: expected a cluster client without keyPrefix; use redisStore(client, { prefix }) instead";
  return new SluiceError("invalid-setting", message);
}

/** Makes our own client, which reconnects forever. */
export function connectTo(target: RedisTarget, options: ClientOptions): RedisConnection {
  const client = connectRedis(target, options);
  const connection = {
    ...ioredisConnection(client as unknown as IoredisLike),
    close: async () => client.disconnect(),
  };
  if (target.kind !== "sentinel") return connection;
  return { ...connection, lookAgain: leavingHungLeader(client as Redis, connection.connectedAtMonotonicMs) };
}

/**
 * A hung leader keeps its connections, even if another one leads by now. Closing the connection makes the client ask the Sentinels. It does
 * not subscribe to them: each publishes the switch when it learns of it, up to seconds later, and a client that has already found the new
 * leader would leave it again.
 */
function leavingHungLeader(client: Redis, connectedAtMonotonicMs: () => number): RedisConnection["lookAgain"] {
  return (unansweredSinceMonotonicMs = Number.NEGATIVE_INFINITY) => {
    // A call to the previous leader says nothing about this connection, which may go to the new one.
    const isHung = client.status === "ready" && unansweredSinceMonotonicMs >= connectedAtMonotonicMs();
    if (isHung) client.disconnect(true);
  };
}
