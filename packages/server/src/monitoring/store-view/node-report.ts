/**
 * Parses what a Redis node reports about itself: INFO, CLUSTER NODES, SLOWLOG. Texts in, facts out. Pure.
 * Anything that a node omits (an older version, a command forbidden by its ACL) is omitted here too.
 */
import type { StoreNode } from "../views/store.js";

export type Info = ReadonlyMap<string, string>;

export function parseInfo(text: string): Info {
  const info = new Map<string, string>();
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0 && !line.startsWith("#")) info.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return info;
}

/** The fields of a node's row that come from INFO. */
export function factsOf(info: Info): Partial<StoreNode> {
  const number = (name: string): number | undefined => {
    const value = Number(info.get(name));
    return info.has(name) && Number.isFinite(value) ? value : undefined;
  };
  const facts = {
    version: info.get("redis_version"),
    role: info.has("role") ? (info.get("role") === "master" ? ("leader" as const) : ("replica" as const)) : undefined,
    leaderAddress: info.has("master_host") ? `${info.get("master_host")}:${info.get("master_port")}` : undefined,
    usedBytes: number("used_memory"),
    maxBytes: number("maxmemory"),
    maxMemoryPolicy: info.get("maxmemory_policy"),
    opsPerSecond: number("instantaneous_ops_per_sec"),
    keys: keysOf(info),
    evictedKeys: number("evicted_keys"),
    connectedClients: number("connected_clients"),
  };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

/** Over all databases; if none is listed, the node is empty. */
function keysOf(info: Info): number | undefined {
  if (!info.has("used_memory")) return undefined;
  let keys = 0;
  for (const [name, value] of info) {
    if (/^db\d+$/.test(name)) keys += Number(/keys=(\d+)/.exec(value)?.[1] ?? 0);
  }
  return keys;
}

interface ReplicaOfInfo {
  readonly address: string;
  readonly offset: number;
}

/** A leader's replicas, from `slave0:ip=127.0.0.1,port=6380,state=online,offset=42,lag=0`. */
export function replicasOf(info: Info): ReplicaOfInfo[] {
  const replicas: ReplicaOfInfo[] = [];
  for (const [name, value] of info) {
    if (!/^slave\d+$/.test(name)) continue;
    const parts = new Map(value.split(",").map((part) => part.split("=", 2) as [string, string]));
    replicas.push({ address: `${parts.get("ip")}:${parts.get("port")}`, offset: Number(parts.get("offset") ?? 0) });
  }
  return replicas;
}

export function replicationOffset(info: Info): number | undefined {
  const offset = Number(info.get("master_repl_offset") ?? Number.NaN);
  return Number.isFinite(offset) ? offset : undefined;
}

export interface ClusterNode {
  readonly address: string;
  readonly role: StoreNode["role"];
  readonly leaderAddress?: string;
  readonly slots: readonly string[];
  /** Marked as failed by the other nodes. */
  readonly failed: boolean;
}

/** The cluster topology from `CLUSTER NODES`: id, ip:port@busport[,name], flags, leader's id, four numbers, slots. */
export function parseClusterNodes(text: string): ClusterNode[] {
  const rows = text
    .split("\n")
    .map((line) => line.trim().split(" "))
    .filter((row) => row.length >= 8);
  const addressOf = (row: readonly string[]): string => row[1]!.split(/[@,]/)[0]!;
  const byId = new Map(rows.map((row) => [row[0]!, addressOf(row)]));
  return rows
    .filter((row) => !/noaddr|handshake/.test(row[2]!))
    .map((row) => {
      const leaderAddress = byId.get(row[3]!);
      return {
        address: addressOf(row),
        role: row[2]!.includes("master") ? ("leader" as const) : ("replica" as const),
        ...(leaderAddress !== undefined && { leaderAddress }),
        // Migrating slots are in brackets.
        slots: row.slice(8).filter((slot) => !slot.startsWith("[")),
        failed: row[2]!.split(",").includes("fail"),
      };
    });
}

const LONGEST_COMMAND = 120;

/** `SLOWLOG GET`: id, time, microseconds, arguments. Only the command's name is kept: keys and values are user data. */
export function slowCommands(reply: unknown): NonNullable<StoreNode["slow"]> {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((entry) => {
    if (!Array.isArray(entry) || !Array.isArray(entry[3])) return [];
    const [, atSeconds, tookUs, words] = entry as [unknown, unknown, unknown, unknown[]];
    const command = `${String(words[0])}${words.length > 1 ? ` (${words.length - 1} arguments)` : ""}`;
    return [
      { atMs: Number(atSeconds) * 1_000, tookMs: Number(tookUs) / 1_000, command: command.slice(0, LONGEST_COMMAND) },
    ];
  });
}

/** `LATENCY LATEST`: event, time of the last one, latest and worst latency in ms. Empty unless the server monitors latencies. */
export function latencyEvents(reply: unknown): NonNullable<StoreNode["latencyEvents"]> {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((entry) => {
    if (!Array.isArray(entry)) return [];
    const [event, atSeconds, lastMs, worstMs] = entry as unknown[];
    return [
      { event: String(event), atMs: Number(atSeconds) * 1_000, lastMs: Number(lastMs), worstMs: Number(worstMs) },
    ];
  });
}
