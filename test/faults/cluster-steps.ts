/**
 * What an operator or an accident does to a Redis Cluster: who leads which key, failovers, slots that move, nodes that join.
 */
import { clusterSlot } from "../../packages/sluice/src/store/redis/cluster/cluster-slot.js";
import { type RedisCluster, until } from "../harness/redis-cluster.js";
import type { RedisServer } from "../harness/redis-server.js";

interface NodeLine {
  readonly id: string;
  readonly port: number;
  readonly flags: readonly string[];
  readonly leaderId: string;
  readonly slots: readonly (readonly [first: number, last: number])[];
}

/** `CLUSTER NODES`, as one node sees it. */
export async function nodesSeenBy(server: RedisServer): Promise<NodeLine[]> {
  const lines = (await server.cli("CLUSTER", "NODES")).trim().split("\n");
  return lines.map((line) => {
    const [id, address, flags, leaderId, , , , , ...slots] = line.split(" ");
    return {
      id: id!,
      port: Number(/:(\d+)@/.exec(address!)?.[1]),
      flags: flags!.split(","),
      leaderId: leaderId!,
      // Slots that are on their way stand in brackets.
      slots: slots
        .filter((range) => !range.startsWith("["))
        .map((range) => range.split("-").map(Number))
        .map(([first, last]) => [first!, last ?? first!] as const),
    };
  });
}

/** Who leads the slot of this user's counters now, and who follows. `asks`: a node that is up. */
export async function leaderOf(
  cluster: RedisCluster,
  user: string,
  asks: RedisServer = cluster.nodes[0]!,
): Promise<{ leader: RedisServer; replicas: RedisServer[] }> {
  const slot = slotOfUser(user);
  const nodes = await nodesSeenBy(asks);
  const leads = nodes.find(({ slots }) => slots.some(([first, last]) => first <= slot && slot <= last))!;
  return { leader: serverAt(cluster, leads), replicas: followersOf(cluster, nodes, leads) };
}

/** Who follows a leader that is up. */
export async function replicasOf(cluster: RedisCluster, leader: RedisServer): Promise<RedisServer[]> {
  const nodes = await nodesSeenBy(leader);
  return followersOf(cluster, nodes, nodes.find(({ flags }) => flags.includes("myself"))!);
}

function followersOf(cluster: RedisCluster, nodes: readonly NodeLine[], { id }: NodeLine): RedisServer[] {
  return nodes.filter(({ leaderId }) => leaderId === id).map((node) => serverAt(cluster, node));
}

function serverAt(cluster: RedisCluster, { port }: NodeLine): RedisServer {
  return cluster.nodes.find((server) => server.port === port)!;
}

export function slotOfUser(user: string): number {
  return clusterSlot(`{user=${user}}`);
}

/** Users (or values of another attribute) whose counters live on each of the leaders, in the order of the nodes. */
export async function usersByLeader(
  cluster: RedisCluster,
  each: number,
  attribute = "user",
): Promise<Map<RedisServer, string[]>> {
  const nodes = await nodesSeenBy(cluster.nodes[0]!);
  const found = new Map<RedisServer, string[]>();
  for (const { port, slots } of nodes) {
    if (slots.length === 0) continue;
    const users: string[] = [];
    for (let i = 0; users.length < each; i++) {
      const slot = clusterSlot(`{${attribute}=u${i}}`);
      if (slots.some(([first, last]) => first <= slot && slot <= last)) users.push(`u${i}`);
    }
    found.set(cluster.nodes.find((server) => server.port === port)!, users);
  }
  return found;
}

/** Resolves when one of the replicas leads, with the time of it: to some hundredths of a second. */
export async function promoted(replicas: readonly RedisServer[]): Promise<{ server: RedisServer; atMs: number }> {
  let leader: RedisServer | undefined;
  await until("a replica is promoted", async () => {
    const roles = await Promise.all(replicas.map((server) => server.cli("ROLE").catch(() => "")));
    leader = replicas[roles.findIndex((role) => role.startsWith("master"))];
    return leader !== undefined;
  });
  return { server: leader!, atMs: performance.now() };
}

/** A failover by order (`CLUSTER FAILOVER`): the leader waits until its replica has everything. Nothing is lost. */
export async function failOverTo(replica: RedisServer): Promise<void> {
  await replica.cli("CLUSTER", "FAILOVER");
  await promoted([replica]);
}

/** Until every node agrees that all are well and every replica follows. */
export async function whole(cluster: RedisCluster): Promise<void> {
  await until("the cluster is whole again", async () => {
    const views = await Promise.all(cluster.nodes.map((server) => nodesSeenBy(server).catch(() => [])));
    const infos = await Promise.all(cluster.nodes.map((server) => server.cli("INFO", "replication").catch(() => "")));
    const isWell = (view: NodeLine[]): boolean =>
      view.length >= cluster.nodes.length &&
      view.every(({ flags }) => !flags.some((flag) => /fail|handshake|noaddr/.test(flag)));
    return views.every(isWell) && infos.every((info) => !info.includes("master_link_status:down"));
  });
}

/** Moves one slot as `redis-cli --cluster reshard` does, a few keys at a time. `between`: runs after each batch of keys. */
export async function moveSlot(
  cluster: RedisCluster,
  { slot, from, to, between }: { slot: number; from: RedisServer; to: RedisServer; between?: () => Promise<void> },
): Promise<number> {
  const [fromId, toId] = await Promise.all(
    [from, to].map(async (server) => (await server.cli("CLUSTER", "MYID")).trim()),
  );
  await to.cli("CLUSTER", "SETSLOT", String(slot), "IMPORTING", fromId!);
  await from.cli("CLUSTER", "SETSLOT", String(slot), "MIGRATING", toId!);
  let moved = 0;
  await between?.();
  for (;;) {
    const keys = (await from.cli("CLUSTER", "GETKEYSINSLOT", String(slot), "1")).trim();
    if (keys === "") break;
    await from.cli("MIGRATE", "127.0.0.1", String(to.port), "", "0", "5000", "KEYS", ...keys.split("\n"));
    moved += keys.split("\n").length;
    await between?.();
  }
  // First the new owner, then the others: told in the other order, the slot would for a moment be nobody's.
  await to.cli("CLUSTER", "SETSLOT", String(slot), "NODE", toId!);
  for (const other of [from, ...cluster.nodes]) {
    // Refused by replicas; a leader that gave away its last slot has become one.
    await other.cli("CLUSTER", "SETSLOT", String(slot), "NODE", toId!).catch(() => "");
  }
  return moved;
}

/** Runs a step no more than so many times. */
export function upTo(times: number, step: () => Promise<void>): () => Promise<void> {
  let left = times;
  return async () => {
    if (left-- > 0) await step();
  };
}
