/** The gRPC transport in this process, and peers that speak HTTP/2 frame by frame: what client libraries would never send. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TlsOptions } from "node:tls";
import { createLimiter } from "sluice";
import { afterEach } from "vitest";
import { HealthService } from "../../packages/server/src/enforcement/envoy/health-service.js";
import { rateLimitService } from "../../packages/server/src/enforcement/envoy/message-codec.js";
import { ownAttributes } from "../../packages/server/src/enforcement/envoy/own-attributes.js";
import { QUOTA_PATH, quotaMethod } from "../../packages/server/src/enforcement/envoy/quota/quota-messages.js";
import { QuotaService } from "../../packages/server/src/enforcement/envoy/quota/quota-service.js";
import { codes, type RateLimitRequest } from "../../packages/server/src/enforcement/envoy/rate-limit-messages.js";
import { addReflection } from "../../packages/server/src/enforcement/envoy/reflection.js";
import type { Done } from "../../packages/server/src/grpc/call.js";
import { FrameReader } from "../../packages/server/src/grpc/http2/frame-reader.js";
import { errorCodes, flags, frameTypes, PREFACE } from "../../packages/server/src/grpc/http2/protocol.js";
import type { HalfSentBounds } from "../../packages/server/src/grpc/message-budget.js";
import { framed } from "../../packages/server/src/grpc/message-frame.js";
import { GrpcTransport } from "../../packages/server/src/grpc/transport.js";
import { createLog } from "../../packages/server/src/log.js";

const METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
/** Methods of which one side or both is a stream. */
export const paths = {
  watch: "/grpc.health.v1.Health/Watch",
  reflection: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  quotas: QUOTA_PATH,
  /** Served by the test itself (`onStream`), its messages as they are. */
  own: "/test.Streams/Both",
} as const;

interface Called {
  readonly request: RateLimitRequest;
  readonly cancelled: boolean;
}

export interface Started {
  readonly port: number;
  readonly transport: GrpcTransport;
  readonly calls: Called[];
  readonly mistakes: string[];
  /** Errors of ours. */
  readonly failures: unknown[];
  readonly quotas: QuotaService;
  connections(): Promise<number>;
  stop(): Promise<void>;
}

interface StartOptions {
  /** Holds the answer back until it resolves. */
  readonly gate?: () => Promise<void>;
  readonly sendWithinMs?: number;
  readonly takeWithinMs?: number;
  /** Of an answer's raw body. */
  readonly answerBytes?: number;
  readonly halfSent?: HalfSentBounds;
  readonly tls?: TlsOptions;
  /** Called in front of each decision. */
  readonly onCall?: (call: Called) => void;
  /** Serves a stream of bytes in both directions. */
  readonly onStream?: (call: Duplex) => void;
}

export async function startTransport({
  gate,
  sendWithinMs = 10_000,
  takeWithinMs,
  answerBytes = 0,
  halfSent,
  tls,
  onCall,
  onStream = () => undefined,
}: StartOptions = {}): Promise<Started> {
  const mistakes: string[] = [];
  const failures: unknown[] = [];
  const calls: Called[] = [];
  const transport = new GrpcTransport({
    mostMessageBytes: 2 ** 20,
    sendWithinMs,
    ...(takeWithinMs !== undefined && { takeWithinMs }),
    halfSent,
    tls,
    onMistake: (message) => mistakes.push(message),
    onFailure: (error) => failures.push(error),
  });
  const answer = { overallCode: codes.ok, statuses: [], responseHeadersToAdd: [], rawBody: Buffer.alloc(answerBytes) };
  transport.addService(rateLimitService() as never, {
    ShouldRateLimit(call: Called, done: Done) {
      calls.push(call);
      onCall?.(call);
      if (gate === undefined) done(null, answer);
      else void gate().then(() => done(null, answer));
    },
  });
  new HealthService(["", "ratelimit"]).addTo(transport);
  addReflection(transport);
  const quotas = openQuotas();
  transport.addService(
    { StreamRateLimitQuotas: quotaMethod() },
    {
      StreamRateLimitQuotas: (call: Parameters<QuotaService["serve"]>[0]) => quotas.serve(call),
    },
  );
  transport.addService({ Both: ownMethod } as never, { Both: onStream } as never);
  const listener = createServer({ noDelay: true }, (socket) => transport.injectConnection(socket));
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    transport,
    calls,
    mistakes,
    failures,
    quotas,
    connections: () =>
      new Promise((resolve, reject) =>
        listener.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    async stop() {
      listener.close();
      quotas.endAll();
      await transport.drain({ timeoutMs: 50 });
    },
  };
}

const ownMethod = {
  path: paths.own,
  requestStream: true,
  responseStream: true,
  requestDeserialize: (bytes: Buffer) => Buffer.from(bytes),
  responseSerialize: (bytes: Buffer) => bytes,
};

function openQuotas(): QuotaService {
  return new QuotaService({
    limiter: createLimiter({ rules: [] }),
    log: createLog("silent"),
    onOutcome: () => undefined,
    attributesOf: (domain, { bucket }) =>
      ownAttributes(domain, [{ entries: Object.entries(bucket).map(([key, value]) => ({ key, value })) }]),
  });
}

/** Starts the transport that a test asks for; it ends with the test. */
export function transportOfTest(): typeof startTransport {
  let service: Started | undefined;
  afterEach(async () => {
    await service?.stop();
    service = undefined;
  });
  return async (options) => {
    service = await startTransport(options);
    return service;
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

export function headOf(path: string, more: Readonly<Record<string, string>> = {}): Buffer {
  const fields = Object.entries({ "content-type": "application/grpc", te: "trailers", ...more });
  const literals = fields.map(([name, value]) => literal(name, value));
  return Buffer.concat([Buffer.of(0x83, 0x86), literal(":path", path), ...literals]);
}

export const HEAD = headOf(METHOD);
/** `domain: "d"`, one descriptor with one entry `k: v`. */
export const MESSAGE = Buffer.from("00000000" + "0d" + "0a0164" + "1208" + "0a06" + "0a016b" + "120176", "hex");

/** A message of gRPC; `flag`: 1 for one that is compressed. */
export function messageOf(bytes: Uint8Array | string, flag = 0): Buffer {
  const message = framed(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  message[0] = flag;
  return message;
}

/** The first bytes of a message that never gets whole. */
export function halfMessage(length: number, sent: number): Buffer {
  const bytes = Buffer.alloc(5 + sent);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

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
  #marks = 0;
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

  /** The status of a call that has ended; trailers spell it in plain text. */
  statusOf(streamId: number): number | undefined {
    const last = this.of(frameTypes.headers, streamId).find((one) => (one.flags & flags.endStream) !== 0);
    const found = /grpc-status(?:.)(\d+)/s.exec(last?.payload.toString("latin1") ?? "");
    return found === null ? undefined : Number(found[1]);
  }

  /** Resolves when the server has read all that was sent so far. */
  async isRead(): Promise<void> {
    const mark = Buffer.alloc(8, ++this.#marks);
    this.send(frame(frameTypes.ping, 0, 0, mark));
    await this.until(() =>
      this.of(frameTypes.ping).some((one) => (one.flags & flags.ack) !== 0 && one.payload.equals(mark)),
    );
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
