/** What one gRPC peer can hold of the service: raw HTTP/2 against the real server. */

import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import { createConnection, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { createGrpcServer, type GrpcServer } from "../../packages/server/src/enforcement/envoy/grpc-server.js";
import { codes } from "../../packages/server/src/enforcement/envoy/rate-limit-messages.js";
import { WaitingListener } from "../../packages/server/src/http/waiting-listener.js";
import { createLog } from "../../packages/server/src/log.js";
import { observeRequests } from "../../packages/server/src/monitoring/observe-requests.js";
import { until } from "../harness/redis-cluster.js";

const METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const DEADLINE_EXCEEDED = "4";
const open: (() => Promise<void> | void)[] = [];
/** Ends the server that was started last. */
let drained: () => Promise<void>;
/** Calls that reached a decision, which would be charged. */
let decided = 0;

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

type Bounds = Pick<Parameters<typeof createGrpcServer>[0], "sendWithinMs" | "mostConnections" | "halfSent">;

async function startGrpc(bounds: Bounds): Promise<number> {
  const server: GrpcServer = createGrpcServer({
    shouldRateLimit: async () => {
      decided++;
      return { overallCode: codes.ok, statuses: [], responseHeadersToAdd: [] };
    },
    observe: observeRequests({ requests: undefined, trace: undefined }),
    log: createLog("silent"),
    tls: undefined,
    carriesToken: undefined,
    ...bounds,
  });
  drained = () => server.drain({ timeoutMs: 100 });
  open.push(drained);
  const port = await new WaitingListener().listen({ host: "127.0.0.1", port: 0, portSetting: "grpc-port" });
  server.serve(port);
  return port.number;
}

function session(port: number): ClientHttp2Session {
  // What waits to be sent is no concern of the server.
  const made = connectHttp2(`http://127.0.0.1:${port}`, { maxSessionMemory: 1_000 });
  made.on("error", () => undefined);
  open.push(() => made.destroy());
  return made;
}

function call(
  peer: ClientHttp2Session,
  headers: Record<string, string> = {},
): { stream: ClientHttp2Stream; status: Promise<string> } {
  const stream = peer.request({
    ":method": "POST",
    ":path": METHOD,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  const status = new Promise<string>((resolve, reject) => {
    // Trailers alone, where there is no message.
    stream.on("response", (headers) => headers["grpc-status"] !== undefined && resolve(String(headers["grpc-status"])));
    stream.on("trailers", (trailers) => resolve(String(trailers["grpc-status"])));
    stream.on("error", reject);
    stream.on("close", () => resolve("closed"));
  });
  stream.resume();
  return { stream, status };
}

/** An empty RateLimitRequest: not compressed, no bytes. */
const message = Buffer.alloc(5);

test.each([
  ["only its headers", Buffer.alloc(0)],
  ["half of a message", Buffer.from([0, 0, 0, 0, 200, 1, 2, 3])],
  ["a whole message, but not the end", message],
])("a call that sent %s is ended by the server", async (_, bytes) => {
  const port = await startGrpc({ sendWithinMs: 50 });
  const { stream, status } = call(session(port));
  if (bytes.length > 0) stream.write(bytes);
  expect(await status).toBe(DEADLINE_EXCEEDED);
});

test("a call that was sent whole is answered, and its deadline does not outlive it", async () => {
  const port = await startGrpc({ sendWithinMs: 50 });
  const peer = session(port);
  const late = call(peer);
  const whole = call(peer);
  whole.stream.end(message);
  expect(await whole.status).toBe("0");
  expect(await late.status).toBe(DEADLINE_EXCEEDED);
  const next = call(peer);
  next.stream.end(message);
  expect(await next.status).toBe("0");
});

test("a call whose deadline passes before it is whole is not decided; one in time is", async () => {
  const port = await startGrpc({});
  const peer = session(port);
  decided = 0;
  const late = call(peer, { "grpc-timeout": "1m" });
  const inTime = call(peer, { "grpc-timeout": "1H" });
  await once(late.stream, "ready");
  // Another call's answer shows that the server has read the heads of both.
  const other = call(peer);
  other.stream.end(message);
  expect(await other.status).toBe("0");
  const beganMonotonicMs = performance.now();
  while (performance.now() - beganMonotonicMs < 5) await new Promise(setImmediate);
  late.stream.end(message);
  inTime.stream.end(message);
  expect([await late.status, await inTime.status, decided]).toEqual([DEADLINE_EXCEEDED, "0", 2]);
});

test("connections beyond the bound are closed at once, and those that are open go on", async () => {
  const port = await startGrpc({ mostConnections: 3 });
  const peers = [session(port), session(port)];
  for (const peer of peers) await new Promise((resolve) => peer.once("remoteSettings", resolve));
  const silent = await connected(port);
  const refused = await connected(port);
  await new Promise((resolve) => refused.once("close", resolve));
  const { stream, status } = call(peers[0]!);
  stream.end(message);
  expect(await status).toBe("0");
  // A place that becomes free is given to the next.
  silent.destroy();
  await new Promise((resolve) => silent.once("close", resolve));
  await expect.poll(() => answers(port)).toBe(true);
});

async function connected(port: number): Promise<Socket> {
  const socket = createConnection({ host: "127.0.0.1", port });
  socket.on("error", () => undefined);
  open.push(() => void socket.destroy());
  await new Promise((resolve) => socket.once("connect", resolve));
  return socket;
}

async function answers(port: number): Promise<boolean> {
  const peer = session(port);
  return await new Promise((resolve) => {
    peer.once("remoteSettings", () => resolve(true));
    peer.once("close", () => resolve(false));
  });
}

test("watchers of health hear what they watch, unknown names too, and end with the server", async () => {
  const client = session(await startGrpc({}));
  const watch = (name: string) => {
    const bytes = Buffer.from([0, 0, 0, 0, name.length + 2, 0x0a, name.length, ...Buffer.from(name)]);
    const stream = client.request({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Watch",
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream.end(bytes);
    return stream;
  };
  const known = watch("ratelimit");
  const unknown = watch("x".repeat(60));
  // SERVING, and SERVICE_UNKNOWN.
  expect((await once(known, "data"))[0]).toEqual(Buffer.from([0, 0, 0, 0, 2, 8, 1]));
  expect((await once(unknown, "data"))[0]).toEqual(Buffer.from([0, 0, 0, 0, 2, 8, 3]));
  const ended = Promise.all([known, unknown].map((stream) => once(stream.resume(), "close")));
  await drained();
  await ended;
  expect([known.rstCode, unknown.rstCode]).toEqual([0, 0]);
});

/** A message of a mebibyte, without its end. */
const most = 2 ** 20;
const halfMessage = (): Buffer => {
  const bytes = Buffer.alloc(5 + most - 1);
  bytes.writeUInt32BE(most, 1);
  return bytes;
};

/** What a session could send, once it sends no more. */
async function sentAtRest({ socket }: ClientHttp2Session): Promise<number> {
  let before = -1;
  while (socket.bytesWritten !== before) {
    before = socket.bytesWritten;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return before;
}

test("half-sent calls of one connection hold a few megabytes, and its whole calls are answered meanwhile", async () => {
  const port = await startGrpc({ sendWithinMs: 60_000 });
  const peer = session(port);
  const calls = Array.from({ length: 100 }, () => call(peer));
  for (const { stream } of calls) stream.write(halfMessage());
  const sent = await sentAtRest(peer);
  // The budget of a connection, and the window of each call; all that was sent would be 100 MiB.
  expect(sent).toBeLessThanOrEqual(8 * most + calls.length * 65_536 + most);
  expect(sent).toBeGreaterThan(4 * most);
  const small = call(peer);
  small.stream.end(message);
  expect(await small.status).toBe("0");
  const elsewhere = call(session(port));
  elsewhere.stream.end(Buffer.concat([halfMessage(), Buffer.alloc(1)]));
  expect(await elsewhere.status).toBe("0");
});

test("calls that wait for room go on when others end: every large call of a connection is answered", async () => {
  const port = await startGrpc({ sendWithinMs: 60_000 });
  const peer = session(port);
  const calls = Array.from({ length: 40 }, () => call(peer));
  for (const { stream } of calls) stream.write(halfMessage());
  await sentAtRest(peer);
  for (const { stream } of calls) stream.end(Buffer.alloc(1));
  expect(await Promise.all(calls.map(({ status }) => status))).toEqual(calls.map(() => "0"));
});

test("half-sent calls of all connections share one budget; those that wait for room go on when others end", async () => {
  const bytes = 2 ** 18;
  const halfSent = { bytesPerConnection: 2 * bytes, bytesInAll: 4 * bytes, calls: 4_096 };
  const port = await startGrpc({ sendWithinMs: 60_000, halfSent });
  const half = Buffer.alloc(5 + bytes - 1);
  half.writeUInt32BE(bytes, 1);
  const peers = Array.from({ length: 8 }, () => session(port));
  const calls = peers.flatMap((peer) => [call(peer), call(peer)]);
  for (const { stream } of calls) stream.write(half);
  const sent = await Promise.all(peers.map(sentAtRest));
  const sum = sent.reduce((all, one) => all + one, 0);
  // Every connection by itself could send its two: eight times as much as one budget for two of them allows.
  const frames = 2 ** 17;
  expect(sum).toBeLessThanOrEqual(4 * bytes + calls.length * 65_536 + frames);
  expect(sum).toBeGreaterThan(4 * bytes);
  for (const { stream } of calls) stream.end(Buffer.alloc(1));
  expect(await Promise.all(calls.map(({ status }) => status))).toEqual(calls.map(() => "0"));
});

test("a connection that goes leaves its room to the others", async () => {
  const bytes = 2 ** 18;
  const halfSent = { bytesPerConnection: 2 * bytes, bytesInAll: 2 * bytes, calls: 4_096 };
  const port = await startGrpc({ sendWithinMs: 60_000, halfSent });
  const half = Buffer.alloc(5 + bytes - 1);
  half.writeUInt32BE(bytes, 1);
  const holder = session(port);
  for (let i = 0; i < 2; i++)
    call(holder)
      .stream.on("error", () => undefined)
      .write(half);
  await sentAtRest(holder);
  const other = call(session(port));
  other.stream.end(Buffer.concat([half, Buffer.alloc(1)]));
  holder.destroy();
  expect(await other.status).toBe("0");
});

test("of too many half-sent calls, those end whose connection has more than its share", async () => {
  const halfSent = { bytesPerConnection: 2 ** 20, bytesInAll: 2 ** 20, calls: 10 };
  const port = await startGrpc({ sendWithinMs: 60_000, halfSent });
  const openCalls = async (peer: ClientHttp2Session, count: number) => {
    const calls = Array.from({ length: count }, () => call(peer));
    for (const { stream, status } of calls) {
      stream.write(message);
      status.catch(() => undefined);
    }
    // The server has seen all of them: it answers a whole call behind them.
    const last = call(peer);
    last.stream.end(message);
    await last.status.catch(() => undefined);
    return calls;
  };
  const greedy = await openCalls(session(port), 8);
  const second = await openCalls(session(port), 8);
  const ended = (calls: typeof greedy) => calls.filter(({ stream }) => stream.closed || stream.destroyed).length;
  await until("the second's are ended beyond its half of ten", async () => ended(second) === 3);
  expect(ended(greedy)).toBe(0);
  // One with few has its share.
  const modest = await openCalls(session(port), 2);
  expect(ended(modest)).toBe(0);
  const whole = call(session(port));
  whole.stream.end(message);
  expect(await whole.status).toBe("0");
});
