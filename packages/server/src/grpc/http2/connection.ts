/**
 * The server's side of an HTTP/2 connection (RFC 9113), as far as gRPC needs it: no push, no priorities. In: bytes of a socket.
 * Out: requests, each a stream with a head and a reader for its body.
 *
 * Everything that a peer controls has a bound: streams, header blocks and their decoded size, frames that cost it nothing, what waits for
 * its windows, what it does not read.
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
import { Sender } from "./sender.js";
import type { Stream } from "./stream.js";
import { MOST_STREAMS, OpenStreams, Streams } from "./streams.js";

/** For all streams together; each stream has a window of its own, which is what bounds memory. */
const CONNECTION_WINDOW = 2 ** 20;
const PING_BYTES = 8;
const GOODBYE = Buffer.from("goodbye!", "latin1");
/** How long a peer may take to read our last words. */
const LINGER_MS = 1_000;

interface ConnectionEvents {
  /** Sets `stream.reader`, unless it answers at once. */
  onRequest(stream: Stream, head: RequestHead): void;
  /** The connection has ended; with the peer's mistake, if it ended by one. */
  onEnd(mistake: ConnectionError | undefined): void;
  /**
   * How many streams at once the peer is told to open. It learns of it after its first calls, so that more are taken all the same, up
   * to the bound.
   */
  readonly toldStreams?: number | undefined;
  /** Counted over all connections of a server. Default: this one alone. */
  readonly open?: OpenStreams;
}

export class Connection {
  readonly #socket: Socket;
  readonly #events: ConnectionEvents;
  readonly #output: Output;
  readonly #sender: Sender;
  readonly #streams: Streams;
  readonly #frames = new FrameReader((frame) => this.#take(frame));
  readonly #guard = new FloodGuard();
  /** Bytes of DATA since the peer's window was last opened. */
  #owedBytes = 0;
  #hasSettings = false;
  #isEnded = false;
  /** The peer does not read, so nothing is read from it (backpressure). */
  #isPaused = false;
  #isReading = false;
  readonly #open: OpenStreams;
  #mistake: ConnectionError | undefined;
  #onGoodbyeHeard: (() => void) | undefined;
  readonly openedMonotonicMs = performance.now();
  lastReadMonotonicMs = this.openedMonotonicMs;

  constructor(socket: Socket, events: ConnectionEvents) {
    this.#socket = socket;
    this.#events = events;
    this.#output = new Output(socket, () => this.#readOn());
    this.#sender = new Sender(this.#output, {
      onLocalClosed: (stream) => this.#streams.localClosed(stream),
      onReset: (stream) => this.#streams.wasReset(stream),
      onOverflow: () => this.#fail(calm("answers wait for a window that is not given")),
    });
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

  /** A call begins to be decided. */
  begin(): void {
    this.#streams.begin();
  }

  /** A call has been decided. */
  decided(): void {
    this.#streams.decided();
    this.#guard.decided();
  }

  ping(): void {
    const at = this.#output.frame(frameTypes.ping, 0, 0, PING_BYTES);
    this.#output.buffer.fill(0, at, at + PING_BYTES);
  }

  /**
   * Tells the peer to go elsewhere so that no call is lost (section 6.8): a first GOAWAY names no last call, and the peer answers the ping
   * behind it when it has read both. It has sent its last call by then.
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
      if (!(error instanceof ConnectionError)) throw error;
      this.#fail(error);
      return;
    } finally {
      this.#isReading = false;
    }
    if (!this.#output.isBehind || this.#isEnded) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  #readOn(): void {
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
        return;
      case frameTypes.pushPromise:
        throw protocolError("PUSH_PROMISE from a client");
      default:
      // Unknown frames are to be ignored (section 5.5).
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
    else this.#sender.widen(bytes);
  }

  #takeSettings(frame: Frame): void {
    if (frame.streamId !== 0) throw protocolError("SETTINGS of a stream");
    const isAck = (frame.flags & flags.ack) !== 0;
    if (isAck && frame.to > frame.from) throw sizeError("SETTINGS");
    this.#hasSettings = true;
    if (isAck) return;
    this.#charge();
    const { initialWindow } = readSettings(frame);
    // In front of what the new window lets through.
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
    if ((marks & flags.ack) !== 0) {
      if (bytes.compare(GOODBYE, 0, PING_BYTES, from, to) === 0) this.#onGoodbyeHeard?.();
      return;
    }
    this.#charge();
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
   * Where no call of any connection is under way, nothing can join this turn's frames: the answer to a lone call leaves at once. Under load
   * it leaves at the end of the turn, with others: clients that are answered one by one ask one by one, and fewer calls share a turn.
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

  /** Says the last words and leaves; a peer that does not read them is not waited for. */
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
    this.#onGoodbyeHeard?.();
    this.#streams.forgetAll();
    this.#events.onEnd(this.#mistake);
  }
}

function calm(what: string): ConnectionError {
  return new ConnectionError(errorCodes.enhanceYourCalm, what);
}
