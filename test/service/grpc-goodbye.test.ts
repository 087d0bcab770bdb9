/** The end of gRPC connections, against a client written frame by frame: it sends a call after it was told of the end, as one far away does. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { createConnection, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { createGrpcServer, type GrpcServer } from "../../packages/server/src/enforcement/envoy/grpc-server.js";
import { codes } from "../../packages/server/src/enforcement/envoy/rate-limit-messages.js";
import { WaitingListener } from "../../packages/server/src/http/waiting-listener.js";
import { createLog } from "../../packages/server/src/log.js";
import { observeRequests } from "../../packages/server/src/monitoring/observe-requests.js";

const DATA = 0;
const HEADERS = 1;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** An HTTP/2 client that does only what it is told. */
class RawClient {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  onFrame: (frame: Frame) => void = () => undefined;
  #last = -1;
  #bytes = Buffer.alloc(0);

  constructor(port: number) {
    this.socket = createConnection({ host: "127.0.0.1", port, noDelay: true });
    this.socket.on("error", () => undefined);
    this.socket.on("data", (chunk: Buffer) => this.#read(chunk));
    this.socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    this.send(SETTINGS, 0, 0);
  }

  send(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): void {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head.writeUInt8(type, 3);
    head.writeUInt8(flags, 4);
    head.writeUInt32BE(stream, 5);
    this.socket.write(Buffer.concat([head, payload]));
  }

  /** A whole call with an empty message. Returns its stream. */
  call(): number {
    this.#last += 2;
    const text = (value: string) => Buffer.from([value.length, ...Buffer.from(value)]);
    const headers = Buffer.concat([
      // RFC 7541: POST and http by their place in the static table, the rest as literals.
      Buffer.from([0x83, 0x86, 0x04]),
      text("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"),
      Buffer.from([0x01]),
      text("sluice"),
      Buffer.from([0x0f, 0x10]),
      text("application/grpc"),
      Buffer.from([0x00]),
      text("te"),
      text("trailers"),
    ]);
    this.send(HEADERS, END_HEADERS, this.#last, headers);
    this.send(DATA, END_STREAM, this.#last, Buffer.alloc(5));
    return this.#last;
  }

  isAnswered(stream: number): boolean {
    return this.frames.some((frame) => frame.type === HEADERS && frame.stream === stream && frame.flags & END_STREAM);
  }

  #read(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    while (this.#bytes.length >= 9) {
      const length = this.#bytes.readUIntBE(0, 3);
      if (this.#bytes.length < 9 + length) return;
      const frame = {
        type: this.#bytes.readUInt8(3),
        flags: this.#bytes.readUInt8(4),
        stream: this.#bytes.readUInt32BE(5),
        payload: this.#bytes.subarray(9, 9 + length),
      };
      this.#bytes = this.#bytes.subarray(9 + length);
      this.frames.push(frame);
      this.onFrame(frame);
    }
  }
}

let server: GrpcServer;
const clients: RawClient[] = [];

async function start(): Promise<number> {
  server = createGrpcServer({
    shouldRateLimit: async () => ({ overallCode: codes.ok, statuses: [], responseHeadersToAdd: [] }),
    observe: observeRequests({ requests: undefined, trace: undefined }),
    log: createLog("silent"),
    tls: undefined,
    carriesToken: undefined,
  });
  const port = await new WaitingListener().listen({ host: "127.0.0.1", port: 0, portSetting: "grpc-port" });
  server.serve(port);
  return port.number;
}

function connect(port: number): RawClient {
  const client = new RawClient(port);
  clients.push(client);
  return client;
}

afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  await server.drain({ timeoutMs: 100 });
});

const isPing = ({ type, flags }: Frame): boolean => type === PING && !(flags & ACK);
const isEnd = ({ type, flags }: Frame): boolean => type === HEADERS && (flags & END_STREAM) !== 0;

test("calls that cross the announcement of the end are answered, also where none was under way", async () => {
  const client = connect(await start());
  const sent = [client.call()];
  const crossing: number[] = [];
  client.onFrame = (frame) => {
    // One call at a time, so that most of the time none is under way; a call on its way when the end is announced comes before the pong.
    if (isEnd(frame) && crossing.length === 0) sent.push(client.call());
    else if (isPing(frame)) {
      crossing.push(client.call());
      client.send(PING, ACK, 0, frame.payload);
    }
  };
  while (sent.length < 100) await once(client.socket, "data");
  const closed = once(client.socket, "close");
  await server.drain({ timeoutMs: 5_000 });
  await closed;
  expect(crossing).toHaveLength(1);
  expect([...sent, ...crossing].filter((stream) => !client.isAnswered(stream))).toEqual([]);
});

test("a client that never answers the ping holds the end for a bounded time, and gets its answers", async () => {
  const client = connect(await start());
  const sent = [client.call()];
  let told = false;
  client.onFrame = (frame) => {
    told ||= frame.type === GOAWAY;
    if (isEnd(frame) && !told) sent.push(client.call());
  };
  while (sent.length < 10) await once(client.socket, "data");
  const closed = once(client.socket, "close");
  await server.drain({ timeoutMs: 5_000 });
  await closed;
  expect(sent.filter((stream) => !client.isAnswered(stream))).toEqual([]);
});

test("an idle client is told too, and its pong ends the wait", async () => {
  const client = connect(await start());
  const before = client.call();
  while (!client.isAnswered(before)) await once(client.socket, "data");
  let crossing = 0;
  client.onFrame = (frame) => {
    if (!isPing(frame)) return;
    crossing = client.call();
    client.send(PING, ACK, 0, frame.payload);
  };
  const closed = once(client.socket, "close");
  await server.drain({ timeoutMs: 60_000 });
  await closed;
  expect(client.isAnswered(crossing)).toBe(true);
  const ends = client.frames.filter(({ type }) => type === GOAWAY).map(({ payload }) => payload.readUInt32BE(0));
  expect(ends[0]).toBe(2 ** 31 - 1);
  // The close names the last call that was answered.
  expect(ends.at(-1)).toBe(crossing);
});

test("a client that does not read its answers cannot hold the end longer than the timeout", async () => {
  const client = connectHttp2(`http://127.0.0.1:${await start()}`);
  client.on("error", () => undefined);
  const stream = client.request({
    ":method": "POST",
    ":path": "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => undefined);
  stream.end(Buffer.alloc(5));
  await once(stream, "response");
  await server.drain({ timeoutMs: 50 });
  client.destroy();
});
