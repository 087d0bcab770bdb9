/**
 * Receives limits from an xDS control plane (state of the world), as envoyproxy/ratelimit does from Envoy Gateway.
 *
 * The life of a stream, and the exit of each step:
 *   1. connect, subscribe to RateLimitConfig resources           refused or lost: reconnect with exponential backoff
 *   2. a response: parse and check every resource                a mistake: NACK with it; the limits in force stay
 *   3. put the limits in force                                   refused: NACK
 *   4. ACK; keep the response for the next start                 a failure is logged
 * Of the responses that arrive while one is processed, only the newest is kept: it alone is the state of the world.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type ClientDuplexStream, credentials, Metadata, status } from "@grpc/grpc-js";
import type { Log } from "../../../log.js";
import { structOf } from "../struct-message.js";
import { CONFIG_TYPE, type DiscoveryResponse, STREAM_PATH, type XdsCodec } from "./xds-messages.js";

export interface XdsServer {
  /** HOST:PORT. */
  readonly address: string;
  readonly nodeId: string;
  readonly nodeMetadata: Readonly<Record<string, string>>;
  /** Stream metadata, for control planes that require a token. */
  readonly headers: Readonly<Record<string, string>>;
  /** Absent: no TLS. Files are reloaded for every connection, so that renewed certificates are used. */
  readonly tls: XdsTls | undefined;
}

interface XdsTls {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** The name expected in the server's certificate, if it is not the address's. */
  readonly serverName: string | undefined;
}

interface XdsClientOptions {
  readonly server: XdsServer;
  readonly codec: XdsCodec;
  readonly log: Log;
  /** Puts a response in force; rejects with its mistakes. */
  readonly accept: (response: DiscoveryResponse) => Promise<void>;
  readonly onOutcome: (outcome: "loaded" | "failed") => void;
  readonly onConnection: (connected: boolean) => void;
  /** Schedules a callback and returns its cancellation. Default: `setTimeout`. */
  readonly after?: After;
}

type After = (delayMs: number, run: () => void) => () => void;

/** Minimum pause between two configurations. */
const LEAST_PAUSE_MS = 20;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;
const MOST_MESSAGE_BYTES = 64 * 2 ** 20;
/** A NACK's text travels in a message and ends up in the control plane's log. */
const LONGEST_MISTAKE = 4_096;
/** A control plane that does not know this node never responds. */
const SILENCE_MS = 15_000;

type Stream = ClientDuplexStream<Buffer, Buffer>;

export class XdsClient {
  readonly #options: XdsClientOptions;
  #client: Client | undefined;
  #stream: Stream | undefined;
  readonly #after: After;
  #cancelReconnect = (): void => undefined;
  #cancelSilence = (): void => undefined;
  #failures = 0;
  /** Version of the last response that came into force. */
  #version = "";
  #waiting: { stream: Stream; response: DiscoveryResponse } | undefined;
  #working = false;
  #closed = false;

  constructor(options: XdsClientOptions) {
    this.#options = options;
    this.#after = options.after ?? afterDelay;
    this.#connect();
  }

  close(): void {
    this.#closed = true;
    this.#cancelReconnect();
    this.#end();
  }

  #end(): void {
    this.#cancelSilence();
    this.#stream?.removeAllListeners();
    // A cancelled stream still emits an error, which without a listener would crash the process.
    this.#stream?.on("error", () => undefined);
    this.#stream?.cancel();
    this.#client?.close();
    this.#stream = undefined;
    this.#client = undefined;
  }

  #connect(): void {
    const { server, log } = this.#options;
    try {
      this.#client = new Client(server.address, credentialsOf(server.tls), channelOptions(server.tls));
    } catch (error) {
      this.#again(`certificates: ${(error as Error).message}`);
      return;
    }
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(server.headers)) metadata.set(name, value);
    const same = (bytes: Buffer): Buffer => bytes;
    const stream: Stream = this.#client.makeBidiStreamRequest(STREAM_PATH, same, same, metadata);
    this.#stream = stream;
    stream.on("data", (bytes: Buffer) => this.#receive(stream, bytes));
    stream.on("error", (error) => this.#again(error.message));
    stream.on("end", () => this.#again("the control plane ended the stream"));
    this.#cancelSilence = this.#after(SILENCE_MS, () => {
      log.warn("the control plane has sent no limits yet; does it know this node?", {
        server: server.address,
        node: server.nodeId,
      });
    });
    this.#send(stream, { nonce: "" });
  }

  #again(why: string): void {
    this.#end();
    this.#options.onConnection(false);
    if (this.#closed) return;
    const { server, log } = this.#options;
    const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 10);
    // Jitter: a fleet must not reconnect to a restarted control plane all at once.
    const pauseMs = longest * (0.5 + Math.random() / 2);
    log.warn("no connection to the control plane; the limits in force stay", { server: server.address, why });
    this.#cancelReconnect = this.#after(pauseMs, () => this.#connect());
  }

  #receive(stream: Stream, bytes: Buffer): void {
    this.#cancelSilence();
    const response = this.#options.codec.readResponse(bytes);
    if (response === undefined) {
      this.#again("expected a DiscoveryResponse, got other bytes");
      return;
    }
    this.#options.onConnection(true);
    this.#waiting = { stream, response };
    if (!this.#working) void this.#work();
  }

  async #work(): Promise<void> {
    this.#working = true;
    while (this.#waiting !== undefined && !this.#closed) {
      const { stream, response } = this.#waiting;
      this.#waiting = undefined;
      const startMonotonicMs = performance.now();
      await this.#take(stream, response);
      // A control plane that sends nonstop must leave most of the time to requests; of what arrives meanwhile, only the last counts.
      const tookMs = performance.now() - startMonotonicMs;
      await sleep(LEAST_PAUSE_MS + 2 * tookMs, undefined, { ref: false });
    }
    this.#working = false;
  }

  async #take(stream: Stream, response: DiscoveryResponse): Promise<void> {
    const { accept, onOutcome, log, server } = this.#options;
    const { nonce, versionInfo, typeUrl } = response;
    try {
      if (typeUrl !== CONFIG_TYPE)
        throw new Error(`expected a response of type ${CONFIG_TYPE}, got ${JSON.stringify(typeUrl)}`);
      await accept(response);
      this.#version = versionInfo;
      this.#failures = 0;
      onOutcome("loaded");
      this.#send(stream, { nonce });
    } catch (error) {
      const mistakes = (error as Error).message;
      onOutcome("failed");
      log.error("limits from the control plane have mistakes; those in force stay", {
        server: server.address,
        version: versionInfo,
        mistakes,
      });
      this.#send(stream, { nonce, mistakes });
    }
  }

  /** An ACK carries the version in force; a NACK adds the mistakes. */
  #send(stream: Stream, { nonce, mistakes }: { nonce: string; mistakes?: string }): void {
    if (stream !== this.#stream) return;
    const { codec, server } = this.#options;
    const metadata = Object.keys(server.nodeMetadata).length === 0 ? {} : { metadata: structOf(server.nodeMetadata) };
    stream.write(
      codec.writeRequest({
        versionInfo: this.#version,
        node: { id: server.nodeId, userAgentName: "sluice", ...metadata },
        typeUrl: CONFIG_TYPE,
        responseNonce: nonce,
        ...(mistakes !== undefined && {
          errorDetail: { code: status.INVALID_ARGUMENT, message: mistakes.slice(0, LONGEST_MISTAKE) },
        }),
      }),
    );
  }
}

function afterDelay(delayMs: number, run: () => void): () => void {
  const timer = setTimeout(run, delayMs);
  timer.unref();
  return () => clearTimeout(timer);
}

function credentialsOf(tls: XdsTls | undefined): ReturnType<typeof credentials.createInsecure> {
  if (tls === undefined) return credentials.createInsecure();
  const read = (file: string | undefined): Buffer | null => (file === undefined ? null : readFileSync(file));
  return credentials.createSsl(read(tls.ca), read(tls.key), read(tls.cert));
}

function channelOptions(tls: XdsTls | undefined): Record<string, string | number> {
  return {
    "grpc.max_receive_message_length": MOST_MESSAGE_BYTES,
    // Keepalive: detects a control plane that vanished silently.
    "grpc.keepalive_time_ms": 30_000,
    "grpc.keepalive_timeout_ms": 10_000,
    "grpc.enable_retries": 0,
    "grpc.enable_channelz": 0,
    ...(tls?.serverName !== undefined && {
      "grpc.ssl_target_name_override": tls.serverName,
      "grpc.default_authority": tls.serverName,
    }),
  };
}
