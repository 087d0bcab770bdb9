/**
 * The nodes of the counters' Redis, and the state of each. Queried off the check path, on separate connections; every query has a deadline,
 * so a dead node costs at most that and is shown as down.
 */
import { parseRedisUrl, type TlsOptions } from "sluice/redis";
import { redisClient } from "../../instance/redis-client.js";
import type { StoreNode } from "../views/store.js";
import {
  type ClusterNode,
  factsOf,
  type Info,
  latencyEvents,
  parseClusterNodes,
  parseInfo,
  replicasOf,
  replicationOffset,
  slowCommands,
} from "./node-report.js";

/** A connection to one node. */
interface NodeClient {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  on(event: "error", listener: () => void): unknown;
  disconnect(): void;
}

interface RedisNodesOptions {
  readonly kind: "single" | "sentinel" | "cluster";
  /** Where discovery starts: the server, the Sentinels, or some of the cluster's nodes. */
  readonly seeds: readonly string[];
  /** The master's name in Sentinel. */
  readonly master?: string | undefined;
  readonly connect: (address: string) => NodeClient;
  /** Per query. Default 500. */
  readonly deadlineMs?: number;
}

/** Redis recommends at most a thousand nodes per cluster; further ones are not queried. */
const MOST_NODES = 1_000;
const SLOW_COMMANDS = 10;

interface Place {
  readonly address: string;
  readonly role: StoreNode["role"];
  readonly leaderAddress?: string;
  readonly slots?: readonly string[];
  readonly failed?: boolean;
}

interface Report {
  readonly node: StoreNode;
  readonly info: Info;
}

export class RedisNodes {
  readonly #options: RedisNodesOptions;
  readonly #deadlineMs: number;
  readonly #clients = new Map<string, NodeClient>();
  /** The nodes as last discovered. */
  #places: readonly Place[] = [];

  constructor(options: RedisNodesOptions) {
    this.#options = options;
    this.#deadlineMs = options.deadlineMs ?? 500;
  }

  async read(): Promise<readonly StoreNode[]> {
    const places = await this.#findPlaces();
    const reports = await Promise.all(places.map((place) => this.#report(place)));
    const found = new Set(places.map(({ address }) => address));
    // Replicas of a single leader, or of Sentinel's, are known only through their leader.
    const replicas = reports.flatMap(({ node, info }) =>
      replicasOf(info)
        .filter(({ address }) => !found.has(address))
        .map(({ address }): Place => ({ address, role: "replica", leaderAddress: node.address })),
    );
    const all = [...reports, ...(await Promise.all(replicas.map((place) => this.#report(place))))];
    this.#forgetAllBut(new Set(all.map(({ node }) => node.address)));
    return withLag(all);
  }

  /** Sends one command to one node, with the deadline. */
  ask(address: string, command: string, ...args: (string | number)[]): Promise<unknown> {
    return inTime(this.#client(address).call(command, ...args), this.#deadlineMs);
  }

  close(): void {
    this.#forgetAllBut(new Set());
  }

  async #findPlaces(): Promise<readonly Place[]> {
    const { kind, seeds, master } = this.#options;
    if (kind === "single") return [{ address: seeds[0]!, role: "leader" }];
    const known = kind === "cluster" ? [...this.#places.map(({ address }) => address), ...seeds] : seeds;
    const asked = await Promise.all(
      Array.from(new Set(known)).map((address) =>
        (kind === "cluster"
          ? this.ask(address, "CLUSTER", "NODES").then((text) => parseClusterNodes(String(text)))
          : this.ask(address, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", master!).then(masterPlaces)
        ).catch((): Place[] => []),
      ),
    );
    const told = asked.find((places: readonly (Place | ClusterNode)[]) => places.length > 0);
    if (told !== undefined) this.#places = told.slice(0, MOST_NODES);
    if (this.#places.length > 0) return this.#places;
    // No node returned the topology: use the configured addresses.
    return seeds.map((address) => ({ address, role: "leader" }));
  }

  async #report({ address, failed: _, slots, ...place }: Place): Promise<Report> {
    const base = { address, ...place, ...(slots !== undefined && slots.length > 0 && { slots }) };
    const startMs = performance.now();
    const answers = await this.ask(address, "PING").then(
      () => true,
      (error: Error) => error.name === "ReplyError",
    );
    if (!answers) return { node: { ...base, state: "down" }, info: new Map() };
    const pingMs = Math.round((performance.now() - startMs) * 100) / 100;
    // An ACL may forbid any of these: show what is allowed.
    const orNothing = (reply: Promise<unknown>): Promise<unknown> => reply.catch(() => undefined);
    const [text, slow, latencies] = await Promise.all([
      orNothing(this.ask(address, "INFO")),
      orNothing(this.ask(address, "SLOWLOG", "GET", SLOW_COMMANDS)),
      orNothing(this.ask(address, "LATENCY", "LATEST")),
    ]);
    const info = parseInfo(typeof text === "string" ? text : "");
    const node: StoreNode = {
      ...base,
      ...factsOf(info),
      state: "up",
      pingMs,
      ...(slow !== undefined && { slow: slowCommands(slow) }),
      ...(latencies !== undefined && { latencyEvents: latencyEvents(latencies) }),
    };
    return { node, info };
  }

  #client(address: string): NodeClient {
    let client = this.#clients.get(address);
    if (client === undefined) {
      client = this.#options.connect(address);
      // A node's answers show its state; an unhandled "error" event would crash the process.
      client.on("error", () => undefined);
      this.#clients.set(address, client);
    }
    return client;
  }

  #forgetAllBut(addresses: ReadonlySet<string>): void {
    const { kind, seeds } = this.#options;
    for (const [address, client] of this.#clients) {
      if (addresses.has(address) || (addresses.size > 0 && kind !== "single" && seeds.includes(address))) continue;
      client.disconnect();
      this.#clients.delete(address);
    }
  }
}

/** The nodes behind a store's URL. */
export function redisNodesOf(url: string, tls: TlsOptions): RedisNodes {
  const target = parseRedisUrl(url);
  const seeds = target.nodes.map(({ host, port }) => `${host}:${port}`);
  /** A connection to one node with the target's login. Connects on first use. */
  const connect = (address: string): NodeClient => {
    const colon = address.lastIndexOf(":");
    const node = { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
    return redisClient({ ...target, kind: "single", nodes: [node] }, { tls, lazy: true });
  };
  return new RedisNodes({ kind: target.kind, seeds, master: target.master, connect });
}

function masterPlaces(reply: unknown): Place[] {
  if (!Array.isArray(reply) || reply.length < 2) return [];
  return [{ address: `${reply[0]}:${reply[1]}`, role: "leader" }];
}

/** How many bytes of its leader's replication stream each replica has not acknowledged. */
function withLag(reports: readonly Report[]): StoreNode[] {
  const lags = new Map<string, number>();
  for (const { info } of reports) {
    const offset = replicationOffset(info);
    if (offset === undefined) continue;
    for (const replica of replicasOf(info)) lags.set(replica.address, Math.max(0, offset - replica.offset));
  }
  return reports.map(({ node }) => {
    const replicationLagBytes = node.role === "replica" ? lags.get(node.address) : undefined;
    return replicationLagBytes === undefined ? node : { ...node, replicationLagBytes };
  });
}

function inTime<T>(answer: Promise<T>, deadlineMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${deadlineMs} ms`)), deadlineMs);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
