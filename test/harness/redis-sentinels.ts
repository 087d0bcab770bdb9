/**
 * A real leader with replicas, watched by Sentinels, on loopback. Ready when every Sentinel knows every replica and every other
 * Sentinel: before that, the loss of the leader would lead to no promotion at all.
 */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./free-port.js";
import { makeTempFolder, removeTempFolder } from "./leash.js";
import { until } from "./redis-cluster.js";
import { redisCommand } from "./redis-command.js";
import { type RedisOptions, type RedisServer, redisBinary, startRedis } from "./redis-server.js";
import { type ServerProcess, startServerProcess } from "./server-process.js";

export interface SentinelOptions {
  readonly replicas?: number;
  readonly sentinels?: number;
  /** Of the leader and each replica. */
  readonly node?: RedisOptions;
  /** More lines of each Sentinel's file: its own password, how it speaks to the servers. */
  readonly sentinelLines?: readonly string[];
  /** What redis-cli needs to speak to a Sentinel. */
  readonly sentinelCliArgs?: readonly string[];
}

export interface SentinelSet extends AsyncDisposable {
  readonly master: string;
  readonly leader: RedisServer;
  readonly replicas: readonly RedisServer[];
  readonly sentinelPorts: readonly number[];
  /** `redis+sentinel://…/main` with every Sentinel. */
  readonly url: string;
  /** Whether every Sentinel names this server to clients that ask for the leader. */
  isNamed(server: RedisServer): Promise<boolean>;
  stop(): Promise<void>;
}

const MASTER = "main";

export async function startSentinels(options: SentinelOptions = {}): Promise<SentinelSet> {
  const { replicas: replicaCount = 2, sentinels: sentinelCount = 3, node = {} } = options;
  const leader = await startRedis(node);
  const follow = ["--replicaof", "127.0.0.1", String(leader.port)];
  const replicas = await Promise.all(
    Array.from({ length: replicaCount }, () => startRedis({ ...node, args: [...(node.args ?? []), ...follow] })),
  );
  const quorum = Math.floor(sentinelCount / 2) + 1;
  const watching = await Promise.all(
    Array.from({ length: sentinelCount }, () => startSentinel({ leaderPort: leader.port, quorum, options })),
  );
  const ask = async (port: number, ...question: string[]): Promise<string> => {
    const { sentinelCliArgs = [] } = options;
    if (sentinelCliArgs.length === 0) return await redisCommand(port, ["SENTINEL", ...question]);
    const args = ["-h", "127.0.0.1", "-p", String(port), ...sentinelCliArgs, "SENTINEL", ...question];
    return (await promisify(execFile)("redis-cli", args, { timeout: 5_000 })).stdout;
  };
  await until("every Sentinel knows every server", async () => {
    const answers = await Promise.all(watching.map(({ port }) => ask(port, "MASTER", MASTER)));
    return answers.every(
      (answer) =>
        answer.includes(`num-slaves\n${replicaCount}\n`) &&
        answer.includes(`num-other-sentinels\n${sentinelCount - 1}\n`),
    );
  });
  const set: SentinelSet = {
    master: MASTER,
    leader,
    replicas,
    sentinelPorts: watching.map(({ port }) => port),
    url: `redis+sentinel://${watching.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${MASTER}`,
    async isNamed(server) {
      const answers = await Promise.all(watching.map(({ port }) => ask(port, "GET-MASTER-ADDR-BY-NAME", MASTER)));
      return answers.every((answer) => answer.trim() === `127.0.0.1\n${server.port}`);
    },
    async stop() {
      await Promise.all(watching.map(({ process }) => process.stop()));
      for (const { folder } of watching) removeTempFolder(folder);
      await Promise.all([leader, ...replicas].map((server) => server.stop()));
    },
    [Symbol.asyncDispose]: () => set.stop(),
  };
  return set;
}

async function startSentinel(started: {
  leaderPort: number;
  quorum: number;
  options: SentinelOptions;
}): Promise<{ port: number; folder: string; process: ServerProcess }> {
  const folder = makeTempFolder("sentinel");
  const port = await freePort();
  const file = join(folder, "sentinel.conf");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${folder}`,
    `sentinel monitor ${MASTER} 127.0.0.1 ${started.leaderPort} ${started.quorum}`,
    `sentinel down-after-milliseconds ${MASTER} 1000`,
    `sentinel failover-timeout ${MASTER} 5000`,
    ...(started.options.sentinelLines ?? []),
  ];
  // TLS replaces the plain port rather than stand beside it.
  const isTls = lines.some((line) => line.startsWith("tls-port"));
  writeFileSync(
    file,
    lines
      .map((line) => (isTls && line === `port ${port}` ? "port 0" : line.replace("tls-port PORT", `tls-port ${port}`)))
      .join("\n"),
  );
  const process = await startServerProcess({
    command: redisBinary(),
    args: [file, "--sentinel"],
    readyLine: /monitor master main/,
    urgent: started.options.node?.urgent ?? false,
  });
  return { port, folder, process };
}
