/**
 * A Redis Cluster whose network can be cut in two. Every way between two nodes, and from clients to nodes, leads through a proxy of
 * this process that knows who speaks: each node leaves by a loopback address of its own (`bind-source-addr`), and each side's clients
 * have doors of their own. So a cut loses bytes between the sides, both ways, and nothing else; no right over the machine's network
 * is needed.
 */
import { Cluster } from "ioredis";
import { freePort } from "../harness/free-port.js";
import { type RedisCluster, startCluster } from "../harness/redis-cluster.js";
import type { RedisServer } from "../harness/redis-server.js";
import { startTcpFaultProxy, type TcpFaultProxy } from "../harness/tcp-fault-proxy.js";

export interface PartitionedCluster extends AsyncDisposable {
  readonly cluster: RedisCluster;
  /** A client on the side of these nodes: while the network is cut it reaches no others. */
  clientBeside(nodes: readonly RedisServer[]): Promise<Cluster>;
  /** Cuts these nodes, and the clients beside them, off from all others. */
  cutOff(nodes: readonly RedisServer[]): void;
  heal(): void;
  stop(): Promise<void>;
}

const addressOf = (n: number): string => `127.0.1.${n + 1}`;

export async function startPartitionedCluster(options: {
  leaders: number;
  replicasEach: number;
}): Promise<PartitionedCluster> {
  const count = options.leaders * (1 + options.replicasEach);
  const numbers = Array.from({ length: count }, (_, n) => n);
  const ports = await Promise.all(numbers.map(() => freePort()));
  const proxied = (upstreamPort: number): Promise<TcpFaultProxy> => startTcpFaultProxy({ upstreamPort });
  const doors = await Promise.all(numbers.map((n) => proxied(ports[n]!)));
  const busDoors = await Promise.all(numbers.map((n) => proxied(ports[n]! + 10_000)));
  const cluster = await startCluster({
    ...options,
    node: (n) => ({
      urgent: true,
      port: ports[n]!,
      args: [
        // This process carries the nodes' own traffic: a busy moment of it must not look like a lost node.
        ...["--cluster-node-timeout", "2000"],
        ...["--bind-source-addr", addressOf(n)],
        ...["--cluster-announce-ip", "127.0.0.1"],
        ...["--cluster-announce-port", String(doors[n]!.port)],
        ...["--cluster-announce-bus-port", String(busDoors[n]!.port)],
      ],
    }),
    meetAt: (_, n) => ({ port: doors[n]!.port, busPort: busDoors[n]!.port }),
  });

  /** Doors of clients, by the node that they lead to, and the nodes that their client stands beside. */
  const clientDoors: { door: TcpFaultProxy; to: RedisServer; beside: readonly RedisServer[] }[] = [];
  const clients: Cluster[] = [];
  const all = (): TcpFaultProxy[] => [...doors, ...busDoors, ...clientDoors.map(({ door }) => door)];

  const made: PartitionedCluster = {
    cluster,
    async clientBeside(nodes) {
      const own = await Promise.all(cluster.nodes.map((server) => proxied(server.port)));
      clientDoors.push(...own.map((door, n) => ({ door, to: cluster.nodes[n]!, beside: nodes })));
      const natMap = Object.fromEntries(
        numbers.map((n) => [`127.0.0.1:${doors[n]!.port}`, { host: "127.0.0.1", port: own[n]!.port }]),
      );
      const first = own[cluster.nodes.indexOf(nodes[0]!)]!;
      const client = new Cluster([{ host: "127.0.0.1", port: first.port }], {
        natMap,
        retryDelayOnFailover: 0,
        retryDelayOnClusterDown: 0,
        slotsRefreshTimeout: 300,
        clusterRetryStrategy: () => 250,
        redisOptions: { maxRetriesPerRequest: 0, connectTimeout: 500 },
      });
      clients.push(client);
      return client;
    },
    cutOff(nodes) {
      const isCutOff = (server: RedisServer): boolean => nodes.includes(server);
      const nodeAt = (address: string): RedisServer => cluster.nodes[Number(address.split(".").at(-1)) - 1]!;
      numbers.forEach((n) => {
        const across = (from: string): boolean => isCutOff(nodeAt(from)) !== isCutOff(cluster.nodes[n]!);
        doors[n]!.blackhole(true, across);
        busDoors[n]!.blackhole(true, across);
      });
      for (const { door, to, beside } of clientDoors) {
        if (isCutOff(to) !== isCutOff(beside[0]!)) door.blackhole(true);
      }
    },
    heal() {
      for (const door of all()) door.blackhole(false);
    },
    async stop() {
      for (const client of clients) client.disconnect();
      await cluster.stop();
      await Promise.all(all().map((door) => door.stop()));
    },
    [Symbol.asyncDispose]: () => made.stop(),
  };
  return made;
}
