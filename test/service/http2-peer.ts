/** The gRPC transport in this process, and peers that speak HTTP/2 frame by frame: what client libraries would never send. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { rateLimitService } from "../../packages/server/src/enforcement/envoy/message-codec.js";
import { codes, type RateLimitRequest } from "../../packages/server/src/enforcement/envoy/rate-limit-messages.js";
import type { Done } from "../../packages/server/src/grpc/call.js";
import { FrameReader } from "../../packages/server/src/grpc/http2/frame-reader.js";
import { errorCodes, flags, frameTypes, PREFACE } from "../../packages/server/src/grpc/http2/protocol.js";
import { GrpcTransport } from "../../packages/server/src/grpc/transport.js";

export const METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

interface Called {
  readonly request: RateLimitRequest;
  readonly cancelled: boolean;
}

export interface Started {
  readonly port: number;
  readonly transport: GrpcTransport;
  readonly calls: Called[];
  readonly mistakes: string[];
  connections(): Promise<number>;
  stop(): Promise<void>;
}

interface StartOptions {
  /** Holds the answer back until it resolves. */
  readonly gate?: () => Promise<void>;
  readonly sendWithinMs?: number;
  /** Of an answer's raw body. */
  readonly answerBytes?: number;
}

export async function startTransport({
  gate,
  sendWithinMs = 10_000,
  answerBytes = 0,
}: StartOptions = {}): Promise<Started> {
  const mistakes: string[] = [];
  const calls: Called[] = [];
  const transport = new GrpcTransport({
    mostMessageBytes: 2 ** 20,
    sendWithinMs,
    onMistake: (message) => mistakes.push(message),
  });
  const answer = { overallCode: codes.ok, statuses: [], responseHeadersToAdd: [], rawBody: Buffer.alloc(answerBytes) };
  transport.addService(rateLimitService() as never, {
    ShouldRateLimit(call: Called, done: Done) {
      calls.push(call);
      if (gate === undefined) done(null, answer);
      else void gate().then(() => done(null, answer));
    },
  });
  const listener = createServer({ noDelay: true }, (socket) => transport.injectConnection(socket));
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    transport,
    calls,
    mistakes,
    connections: () =>
      new Promise((resolve, reject) =>
        listener.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    async stop() {
      listener.close();
      await transport.drain({ timeoutMs: 50 });
    },
  };
}

export interface Received {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export function frame(type: number, marks: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = marks;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

export function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function literal(name: string, value: string): Buffer {
  const text = (part: string): Buffer[] => [length(part.length), Buffer.from(part, "latin1")];
  return Buffer.concat([Buffer.of(0), ...text(name), ...text(value)]);
}

function length(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let rest = value - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

export const HEAD = Buffer.concat([
  Buffer.of(0x83, 0x86),
  literal(":path", METHOD),
  literal("content-type", "application/grpc"),
  literal("te", "trailers"),
]);
/** `domain: "d"`, one descriptor with one entry `k: v`. */
export const MESSAGE = Buffer.from("00000000" + "0d" + "0a0164" + "1208" + "0a06" + "0a016b" + "120176", "hex");

export function wholeCall(streamId: number): Buffer {
  return Buffer.concat([
    frame(frameTypes.headers, flags.endHeaders, streamId, HEAD),
    frame(frameTypes.data, flags.endStream, streamId, MESSAGE),
  ]);
}

export class RawPeer {
  readonly socket: Socket;
  readonly frames: Received[] = [];
  #onFrame: () => void = () => undefined;
  isClosed = false;

  static async connect(port: number, { settings = Buffer.alloc(0), preface = true } = {}): Promise<RawPeer> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    const peer = new RawPeer(socket);
    // The window of the connection is wide: tests shut those of streams.
    const wide = frame(frameTypes.windowUpdate, 0, 0, number(2 ** 30));
    if (preface) peer.send(PREFACE, frame(frameTypes.settings, 0, 0, settings), wide);
    return peer;
  }

  private constructor(socket: Socket) {
    this.socket = socket;
    const reader = new FrameReader(({ type, flags: marks, streamId, bytes, from, to }) => {
      this.frames.push({ type, flags: marks, streamId, payload: Buffer.from(bytes.subarray(from, to)) });
    });
    reader.read(PREFACE);
    socket.on("data", (chunk) => {
      reader.read(chunk);
      this.#onFrame();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.isClosed = true;
      this.#onFrame();
    });
  }

  send(...bytes: Buffer[]): void {
    if (this.socket.writable) this.socket.write(Buffer.concat(bytes));
  }

  /** Resolves when `found` holds, looked at with each frame and at the close. */
  async until(found: () => boolean): Promise<void> {
    while (!found()) {
      if (this.isClosed)
        throw new Error(
          `the connection was closed first: ${this.goaway}, ${this.of(frameTypes.goaway).at(-1)?.payload.toString("latin1", 8)}`,
        );
      await new Promise<void>((resolve) => {
        this.#onFrame = resolve;
      });
    }
  }

  async closed(): Promise<void> {
    if (!this.isClosed) await new Promise((resolve) => this.socket.once("close", resolve));
  }

  of(type: number, streamId?: number): Received[] {
    return this.frames.filter((one) => one.type === type && (streamId ?? one.streamId) === one.streamId);
  }

  /** Streams whose answer is whole. */
  get answered(): number[] {
    return this.frames
      .filter((one) => one.type < 2 && (one.flags & flags.endStream) !== 0)
      .map(({ streamId }) => streamId);
  }

  /** The code of the last GOAWAY, by name. */
  get goaway(): string | undefined {
    const code = this.of(frameTypes.goaway).at(-1)?.payload.readUInt32BE(4);
    return Object.entries(errorCodes).find(([, one]) => one === code)?.[0];
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Whether the service still answers others. */
export async function isServing(port: number): Promise<boolean> {
  const peer = await RawPeer.connect(port);
  peer.send(wholeCall(1));
  await peer.until(() => peer.answered.includes(1));
  peer.destroy();
  return true;
}
