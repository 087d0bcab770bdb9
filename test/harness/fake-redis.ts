/**
 * A server that speaks RESP2 and answers scripts with whatever a test gives it, byte by byte: what a proxy, an old server or a program that
 * is no Redis may send. Every other command is answered as a Redis would, as far as clients ask at their start.
 */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

export interface FakeRedis extends AsyncDisposable {
  readonly url: string;
  /** As a cluster of one node that holds every slot. */
  readonly clusterUrl: string;
  readonly port: number;
}

interface FakeAnswers {
  readonly script: () => string;
  /** Commands that read; nothing is there by default. */
  readonly read?: () => string;
}

const reads: ReadonlySet<string> = new Set(["GET", "MGET", "HGETALL", "HMGET", "ZRANGEBYLEX", "ZRANDMEMBER"]);
const INFO = "redis_version:7.0.15\r\nloading:0\r\n";

export async function startFakeRedis(answers: FakeAnswers): Promise<FakeRedis> {
  const sockets = new Set<Socket>();
  let port = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
    let unread = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      unread = Buffer.concat([unread, chunk]);
      for (let found = readCommand(unread); found !== undefined; found = readCommand(unread)) {
        unread = unread.subarray(found.end);
        socket.write(answer(found.words, port, answers));
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    clusterUrl: `redis+cluster://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function answer([command, detail]: readonly string[], port: number, { script, read }: FakeAnswers): string {
  switch (command) {
    case "EVALSHA":
    case "EVAL":
      return script();
    case "INFO":
      return `$${INFO.length}\r\n${INFO}\r\n`;
    case "PING":
      return "+PONG\r\n";
    case "CLUSTER":
      return detail === "SLOTS"
        ? `*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n+127.0.0.1\r\n:${port}\r\n`
        : "+cluster_state:ok\r\n";
    default:
      if (reads.has(command!)) return read?.() ?? "$-1\r\n";
      return "+OK\r\n";
  }
}

/** The first two words of the first whole command, and where that command ends. */
function readCommand(bytes: Buffer): { words: readonly string[]; end: number } | undefined {
  let end = bytes.indexOf("\r\n") + 2;
  if (end < 2) return undefined;
  const count = Number(bytes.toString("latin1", 1, end - 2));
  const words: string[] = [];
  for (let i = 0; i < count; i++) {
    const lengthEnd = bytes.indexOf("\r\n", end);
    if (lengthEnd < 0) return undefined;
    const length = Number(bytes.toString("latin1", end + 1, lengthEnd));
    const start = lengthEnd + 2;
    end = start + length + 2;
    if (bytes.length < end) return undefined;
    if (i < 2) words.push(bytes.toString("latin1", start, start + length).toUpperCase());
  }
  return { words, end };
}
