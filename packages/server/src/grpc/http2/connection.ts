/**
 * The server side of an HTTP/2 connection (RFC 9113), as far as gRPC needs it: no push, no priorities. In: bytes from a socket. Out:
 * requests, each a stream with a header list and a reader for its body.
 *
 * Everything that a peer controls is bounded: streams, header blocks and their decoded size, frames that are free for the peer, data
 * waiting for its flow-control windows, and output that it does not read.
 */
import type { Socket } from "node:net";
import { FloodGuard } from "./flood-guard.js";
import { type Frame, FrameReader } from "./frame-reader.js";
import { Output } from "./output.js";
import { readSettings, writeSettings } from "./peer-settings.js";
import {
  ConnectionError,
  type ErrorCode,
  errorCodes,
  flags,
  frameTypes,
  INITIAL_WINDOW,
  MAX_STREAM_ID,
  protocolError,
  sizeError,
} from "./protocol.js";
import { MOST_HEADER_LIST_BYTES, type RequestHead } from "./request-head.js";
import { Sender, type WaitingData } from "./sender.js";
import type { Stream } from "./stream.js";
import { MOST_STREAMS, OpenStreams, SMALL_STEP_BYTES, Streams } from "./streams.js";

/** Shared by all streams. Memory is bounded by each stream's own window, not by this one. */
const CONNECTION_WINDOW = 2 ** 20;
const PING_BYTES = 8;
const GOODBYE = Buffer.from("goodbye!", "latin1");
/** How long to wait for a peer to acknowledge the GOAWAY or to read the last frames. */
const LINGER_MS = 1_000;

interface ConnectionEvents {
  /** Must set `stream.reader`, unless it answers synchronously. */
  onRequest(stream: Stream, head: RequestHead): void;
  /** The connection has ended; `mistake` is set if a protocol error by the peer ended it. */
  onEnd(mistake: ConnectionError | undefined): void;
  /** A handler threw: our bug, not the peer's mistake. The connection ends. */
  onFailure(error: unknown): void;
  /**
   * The advertised SETTINGS_MAX_CONCURRENT_STREAMS. A peer learns it only after its first calls, so more streams than this are accepted, up
   * to MOST_STREAMS.
   */
  readonly toldStreams?: number | undefined;
  /** Open streams over all connections of a server. Default: this connection only. */
  readonly open?: OpenStreams;
  /** Data waiting for windows, over all connections of a server. Default: this connection only. */
  readonly waiting?: WaitingData;
}

export class Connection {
  readonly #socket: Socket;
  readonly #events: ConnectionEvents;
  readonly #output: Output;
  readonly #sender: Sender;
  readonly #streams: Streams;
  readonly #frames = new FrameReader((frame) => this.#take(frame));
  readonly #guard = new FloodGuard();
  /** DATA bytes received since the last WINDOW_UPDATE for the connection. */
  #owedBytes = 0;
  #hasSettings = false;
  #isEnded = false;
  /** The peer does not read its responses, so we stop reading from it (backpressure). */
  #isPaused = false;
  #isReading = false;
  readonly #open: OpenStreams;
  readonly #whenRead = new Set<() => void>();
  #mistake: ConnectionError | undefined;
  #onGoodbyeHeard: (() => void) | undefined;
  readonly openedMonotonicMs = performance.now();
  lastReadMonotonicMs = this.openedMonotonicMs;

  constructor(socket: Socket, events: ConnectionEvents) {
    this.#socket = socket;
    this.#events = events;
    this.#output = new Output(socket, () => this.#readOn());
    const senderEvents = {
      onLocalClosed: (stream: Stream) => this.#streams.localClosed(stream),
      onReset: (stream: Stream) => this.#streams.wasReset(stream),
      onOverflow: () => this.#fail(calm("answers wait for a window that is not given")),
    };
    this.#sender = new Sender(this.#output, senderEvents, events.waiting);
    this.#open = events.open ?? new OpenStreams();
    this.#streams = new Streams(this.#sender, this.#open, {
      onRequest: (stream, head) => events.onRequest(stream, head),
      onIdleWork: () => this.#charge(),
      onRemoved: () => this.#afterRemoval(),
    });
    const { toldStreams: mostStreams = MOST_STREAMS } = events;
    writeSettings(this.#output, { mostStreams, mostHeaderListBytes: MOST_HEADER_LIST_BYTES });
    this.#sender.windowUpdate(0, CONNECTION_WINDOW - INITIAL_WINDOW);
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("end", () => socket.end());
    socket.on("close", () => this.#end());
  }

  get hasPreface(): boolean {
    return this.#frames.hasPreface;
  }

  streams(): Iterable<Stream> {
    return this.#streams.all();
  }

  /** A handler starts to work on a call. */
  begin(): void {
    this.#streams.begin();
  }

  /** A call was answered, which refills the flood guard. */
  decided(): void {
    this.#streams.decided();
    this.#guard.decided();
  }

  /** A call ended without an answer. */
  abandoned(): void {
    this.#streams.decided();
  }

  /** Whether the peer reads so slowly that no more responses should be produced (backpressure). */
  get isBehind(): boolean {
    return this.#output.isBehind;
  }

  /** Bytes that the socket has taken so far; undefined if none wait for it. */
  get takenBytes(): number | undefined {
    return this.#output.takenBytes;
  }

  /** Calls `goOn` once the peer has caught up. */
  whenRead(goOn: () => void): void {
    this.#whenRead.add(goOn);
  }

  notWhenRead(goOn: () => void): void {
    this.#whenRead.delete(goOn);
  }

  ping(): void {
    const at = this.#output.frame(frameTypes.ping, 0, 0, PING_BYTES);
    this.#output.buffer.fill(0, at, at + PING_BYTES);
  }

  /**
   * Graceful shutdown that loses no call (RFC 9113, section 6.8): a first GOAWAY without a last stream id, then a PING. The PING's ack
   * proves that the peer has read the GOAWAY and has opened its last stream.
   */
  async close(): Promise<void> {
    if (!this.#isEnded) {
      await this.#sayGoodbye();
      this.#streams.isClosed = true;
      if (!this.#isEnded) this.#goaway(this.#streams.lastId, errorCodes.noError);
      this.#afterRemoval();
    }
    if (!this.#socket.destroyed) await new Promise<void>((resolve) => this.#socket.once("close", () => resolve()));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  async #sayGoodbye(): Promise<void> {
    this.#goaway(MAX_STREAM_ID, errorCodes.noError);
    const at = this.#output.frame(frameTypes.ping, 0, 0, PING_BYTES);
    this.#output.buffer.set(GOODBYE, at);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LINGER_MS);
      this.#onGoodbyeHeard = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #read(chunk: Buffer): void {
    this.lastReadMonotonicMs = performance.now();
    this.#isReading = true;
    try {
      this.#frames.read(chunk);
    } catch (error) {
      if (error instanceof ConnectionError) this.#fail(error);
      else this.#giveUp(error);
      return;
    } finally {
      this.#isReading = false;
    }
    if (!this.#output.isBehind || this.#isEnded) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  #readOn(): void {
    for (const goOn of this.#whenRead) {
      if (this.#output.isBehind) return;
      this.#whenRead.delete(goOn);
      goOn();
    }
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  #take(frame: Frame): void {
    const { type } = frame;
    if (!this.#hasSettings && type !== frameTypes.settings) throw protocolError("the first frame is not SETTINGS");
    this.#streams.check(frame);
    switch (type) {
      case frameTypes.data:
        this.#takeData(frame);
        return;
      case frameTypes.headers:
        this.#streams.takeHeaders(frame);
        return;
      case frameTypes.continuation:
        this.#streams.takeContinuation(frame);
        return;
      case frameTypes.windowUpdate:
        this.#takeWindowUpdate(frame);
        return;
      case frameTypes.rstStream:
        this.#streams.takeReset(frame);
        return;
      case frameTypes.settings:
        this.#takeSettings(frame);
        return;
      case frameTypes.ping:
        this.#takePing(frame);
        return;
      case frameTypes.priority:
        this.#streams.takePriority(frame);
        return;
      case frameTypes.goaway:
        if (frame.streamId !== 0) throw protocolError("GOAWAY of a stream");
        this.#charge();
        return;
      case frameTypes.pushPromise:
        throw protocolError("PUSH_PROMISE from a client");
      default:
        // Unknown frame types must be ignored (section 5.5).
        this.#charge();
    }
  }

  #takeData(frame: Frame): void {
    if (frame.streamId === 0) throw protocolError("DATA of no stream");
    this.#owedBytes += frame.to - frame.from;
    if (this.#owedBytes > CONNECTION_WINDOW) {
      throw new ConnectionError(errorCodes.flowControlError, "DATA beyond the connection's window");
    }
    if (this.#owedBytes * 2 >= CONNECTION_WINDOW) {
      this.#sender.windowUpdate(0, this.#owedBytes);
      this.#owedBytes = 0;
    }
    this.#streams.takeData(frame);
  }

  #takeWindowUpdate(frame: Frame): void {
    if (frame.to - frame.from !== 4) throw sizeError("WINDOW_UPDATE");
    const bytes = frame.bytes.readUInt32BE(frame.from) & 0x7fff_ffff;
    if (frame.streamId !== 0) this.#streams.takeWindowUpdate(frame, bytes);
    else if (bytes === 0) throw protocolError("WINDOW_UPDATE of 0");
    else {
      if (bytes < SMALL_STEP_BYTES) this.#charge();
      this.#sender.widen(bytes);
    }
  }

  #takeSettings(frame: Frame): void {
    if (frame.streamId !== 0) throw protocolError("SETTINGS of a stream");
    const isAck = (frame.flags & flags.ack) !== 0;
    if (isAck && frame.to > frame.from) throw sizeError("SETTINGS");
    this.#hasSettings = true;
    this.#charge();
    if (isAck) return;
    const { initialWindow } = readSettings(frame);
    // The SETTINGS ack goes out before any data that the new window permits.
    this.#output.frame(frameTypes.settings, flags.ack, 0, 0);
    if (initialWindow !== undefined) {
      const change = initialWindow - this.#sender.initialWindow;
      this.#sender.initialWindow = initialWindow;
      if (change !== 0) this.#streams.widen(change);
    }
  }

  #takePing({ streamId, bytes, from, to, flags: marks }: Frame): void {
    if (streamId !== 0) throw protocolError("PING of a stream");
    if (to - from !== PING_BYTES) throw sizeError("PING");
    this.#charge();
    if ((marks & flags.ack) !== 0) {
      if (bytes.compare(GOODBYE, 0, PING_BYTES, from, to) === 0) this.#onGoodbyeHeard?.();
      return;
    }
    const at = this.#output.frame(frameTypes.ping, flags.ack, 0, PING_BYTES);
    bytes.copy(this.#output.buffer, at, from, to);
  }

  #charge(): void {
    if (!this.#guard.take()) throw calm("a flood of frames");
  }

  #goaway(lastStreamId: number, code: ErrorCode, message = ""): void {
    const text = Buffer.from(message, "latin1");
    const at = this.#output.frame(frameTypes.goaway, 0, 0, 8 + text.length);
    this.#output.buffer.writeUInt32BE(lastStreamId, at);
    this.#output.buffer.writeUInt32BE(code, at + 4);
    this.#output.buffer.set(text, at + 8);
  }

  /**
   * If no connection has a call in flight, nothing else can join this turn's write, so a lone response is flushed at once. Under load,
   * responses wait for the end of the turn: flushing them one by one would make clients send their next calls one by one, and fewer calls
   * would share a turn.
   */
  #afterRemoval(): void {
    if (this.#streams.size > 0 || this.#isEnded) return;
    if (this.#streams.isClosed) this.#finish();
    else if (this.#open.count === 0 && !this.#isReading) this.#output.flush();
  }

  #fail(mistake: ConnectionError): void {
    if (this.#isEnded) return;
    this.#mistake = mistake;
    this.#goaway(this.#streams.lastId, mistake.code, mistake.message);
    this.#finish();
  }

  /** An internal error must neither crash the process nor leave a half-served stream open. */
  #giveUp(error: unknown): void {
    this.#events.onFailure(error);
    if (this.#isEnded) return;
    this.#goaway(this.#streams.lastId, errorCodes.internalError);
    this.#finish();
  }

  /** Flushes the last frames, then closes the socket; a peer that does not read them is cut off after LINGER_MS. */
  #finish(): void {
    this.#frames.stop();
    this.#output.flush();
    this.#socket.end();
    this.#socket.resume();
    const timer = setTimeout(() => this.#socket.destroy(), LINGER_MS);
    this.#socket.once("close", () => clearTimeout(timer));
    this.#end();
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#frames.stop();
    this.#whenRead.clear();
    this.#onGoodbyeHeard?.();
    this.#streams.forgetAll();
    this.#events.onEnd(this.#mistake);
  }
}

function calm(what: string): ConnectionError {
  return new ConnectionError(errorCodes.enhanceYourCalm, what);
}
