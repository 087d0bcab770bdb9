/**
 * The service's own clients of the store's Redis, for the rule cache and monitoring. The library makes them, so that they are
 * connected exactly as the counters' client is; here is only what the service asks of them beside.
 */
import { type Cluster, connectRedis as connect, type Redis, startHeartbeat } from "sluice/internal";
import { parseRedisUrl } from "sluice/redis";

/** No command waits for ever: whoever asks has a database to fall back on. */
const commandTimeoutMs = 500;

export type RedisTarget = Redis | Cluster;

export function connectRedis(url: string): RedisTarget {
  return connect(parseRedisUrl(url), { commandTimeoutMs });
}

const HEARTBEAT_MS = 1_000;

/**
 * Gives up a subscription that no longer answers, so that the client connects and subscribes anew. The client's own heartbeat does not
 * reach it: on a cluster a subscription has a connection of its own. To subscribe again changes nothing, and is answered.
 */
export function keepSubscription(client: RedisTarget, channel: string): { stop(): void } {
  let heard = 0;
  return startHeartbeat({
    everyMs: HEARTBEAT_MS,
    heard: () => (client.status === "ready" ? { connection: client, count: heard } : undefined),
    ask() {
      client.subscribe(channel).then(
        () => heard++,
        () => {},
      );
    },
    giveUp: () => client.disconnect(true),
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
  const { kind, nodes, master } = parseRedisUrl(url);
  const addresses = nodes.map(({ host, port }) => `${host}:${port}`);
  return { kind, addresses, ...(master !== undefined && { master }) };
}

/** A client for one node of a target, with the target's login, for what is asked of each node apart. It connects when first asked. */
export function connectNode(url: string, address: string): RedisTarget {
  const colon = address.lastIndexOf(":");
  const node = { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
  return connect({ ...parseRedisUrl(url), kind: "single", nodes: [node] }, { commandTimeoutMs, lazy: true });
}
