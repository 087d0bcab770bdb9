/**
 * The streams of a connection: what frames do to them, from the head of a request to the last frame of its answer (RFC 9113, section 5.1).
 * A stream leaves the table when both sides have ended it, or one has reset it.
 */

import type { Frame } from "./frame-reader.js";
import { HeaderBlocks } from "./header-blocks.js";
import { ConnectionError, type ErrorCode, errorCodes, flags, protocolError, sizeError } from "./protocol.js";
import type { RequestHead } from "./request-head.js";
import type { Sender } from "./sender.js";
import { Stream } from "./stream.js";

/** Each that is under way holds memory; more wait at the client until one ends. */
export const MOST_STREAMS = 1_000;
/** Streams that we have reset: what the peer sent before it heard of it is no mistake. */
const MOST_RESET_REMEMBERED = 1_000;

interface StreamsEvents {
  /** Sets `stream.reader`, unless it answers at once. */
  onRequest(stream: Stream, head: RequestHead): void;
  /** A frame that costs us something and the peer nothing. Throws if it is one of a flood. */
  onIdleWork(): void;
  /** A stream has left the table. */
  onRemoved(): void;
}

/** How many streams are under way, over several connections. */
export class OpenStreams {
  count = 0;
}

export class Streams {
  readonly #events: StreamsEvents;
  readonly #sender: Sender;
  readonly #all: OpenStreams;
  readonly #streams = new Map<number, Stream>();
  readonly #resetByUs = new Set<number>();
  readonly #blocks = new HeaderBlocks();
  #lastId = 0;
  /** Calls that are being decided, also for clients that left: a client that resets its calls gets no more than its share. */
  #underWay = 0;
  /** The peer was told to open no more. */
  isClosed = false;

  constructor(sender: Sender, all: OpenStreams, events: StreamsEvents) {
    this.#sender = sender;
    this.#all = all;
    this.#events = events;
  }

  get size(): number {
    return this.#streams.size;
  }

  get lastId(): number {
    return this.#lastId;
  }

  all(): Iterable<Stream> {
    return this.#streams.values();
  }

  begin(): void {
    this.#underWay++;
  }

  decided(): void {
    this.#underWay--;
  }

  /** Within a header block only its continuation may come. */
  check({ type, streamId }: Frame): void {
    this.#blocks.check(type, streamId);
  }

  takeHeaders(frame: Frame): void {
    const { streamId } = frame;
    if (streamId % 2 === 0) throw protocolError("HEADERS of a stream that no client opens");
    skipPadding(frame);
    const hasPriority = (frame.flags & flags.priority) !== 0;
    if (hasPriority && frame.to - frame.from < 5) throw sizeError("HEADERS");
    if (!this.#streams.has(streamId) && streamId <= this.#lastId && !this.#resetByUs.has(streamId)) {
      throw new ConnectionError(errorCodes.streamClosed, "HEADERS of a stream that is closed");
    }
    if (hasPriority) {
      if (dependsOnItself(frame)) throw protocolError("a stream that depends on itself");
      frame.from += 5;
    }
    const block = this.#blocks.begin(frame);
    if (block !== undefined) this.#takeHead(block);
  }

  takeContinuation(frame: Frame): void {
    const block = this.#blocks.continue(frame);
    if (block !== undefined) this.#takeHead(block);
  }

  takeData(frame: Frame): void {
    const { streamId } = frame;
    const length = frame.to - frame.from;
    skipPadding(frame);
    const stream = this.#streams.get(streamId);
    if (stream === undefined || stream.isRemoteClosed) {
      this.#takeLateData(streamId, stream);
      return;
    }
    stream.receiveWindow -= length;
    stream.owedBytes += length;
    stream.receivedBytes += frame.to - frame.from;
    stream.isRemoteClosed = (frame.flags & flags.endStream) !== 0;
    if (stream.receiveWindow < 0) this.#sender.reset(stream, errorCodes.flowControlError);
    else if (!stream.isAsDeclared) this.#sender.reset(stream, errorCodes.protocolError);
    else {
      if (frame.to > frame.from) stream.reader?.onData(frame.bytes.subarray(frame.from, frame.to));
      if (stream.isRemoteClosed) this.#remoteClosed(stream);
    }
  }

  takeWindowUpdate({ streamId }: Frame, bytes: number): void {
    if (streamId > this.#lastId) throw protocolError("WINDOW_UPDATE of a stream that was never opened");
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return;
    if (bytes === 0) this.#sender.reset(stream, errorCodes.protocolError);
    else if (!this.#sender.widenStream(stream, bytes)) this.#sender.reset(stream, errorCodes.flowControlError);
  }

  takeReset({ streamId, from, to }: Frame): void {
    if (to - from !== 4) throw sizeError("RST_STREAM");
    if (streamId === 0 || streamId > this.#lastId) throw protocolError("RST_STREAM of a stream that was never opened");
    this.#events.onIdleWork();
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) this.#forget(stream);
  }

  /** Priorities are not used; a wrong one is still the stream's mistake. */
  takePriority(frame: Frame): void {
    const { streamId, from, to } = frame;
    if (streamId === 0) throw protocolError("PRIORITY of no stream");
    const isSized = to - from === 5;
    if (isSized && !dependsOnItself(frame)) return;
    const stream = this.#streams.get(streamId);
    if (stream === undefined) throw isSized ? protocolError("a stream that depends on itself") : sizeError("PRIORITY");
    this.#sender.reset(stream, isSized ? errorCodes.protocolError : errorCodes.frameSizeError);
  }

  /** The peer takes so much more, or less, from each. */
  widen(bytes: number): void {
    for (const stream of this.#streams.values()) {
      if (!this.#sender.widenStream(stream, bytes))
        throw new ConnectionError(errorCodes.flowControlError, "a window above 2^31-1");
    }
  }

  /** We have sent its last frame. */
  localClosed(stream: Stream): void {
    stream.isLocalClosed = true;
    if (stream.isRemoteClosed) this.#remove(stream);
    // We have answered before the request was whole: the rest is not needed (section 8.1).
    else this.#sender.reset(stream, errorCodes.noError);
  }

  wasReset(stream: Stream): void {
    this.#rememberReset(stream.id);
    this.#forget(stream);
  }

  /** The connection is gone. */
  forgetAll(): void {
    for (const stream of [...this.#streams.values()]) this.#forget(stream);
  }

  #takeHead({ streamId, endsStream, head }: { streamId: number; endsStream: boolean; head: RequestHead }): void {
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) this.#takeTrailers(stream, head, endsStream);
    else if (streamId > this.#lastId) {
      this.#lastId = streamId;
      this.#open(streamId, head, endsStream);
    }
  }

  #open(streamId: number, head: RequestHead, endsStream: boolean): void {
    const stream = new Stream(streamId, this.#sender);
    stream.isRemoteClosed = endsStream;
    stream.declaredBytes = head.contentLength;
    const isFull = this.#streams.size >= MOST_STREAMS || this.#underWay >= MOST_STREAMS;
    if (!head.isTooLarge && !(head.isRequest && stream.isAsDeclared)) this.#refuse(streamId, errorCodes.protocolError);
    // After the last GOAWAY the peer sends these elsewhere.
    else if (isFull || this.isClosed) this.#refuse(streamId, errorCodes.refusedStream);
    else {
      this.#streams.set(streamId, stream);
      this.#all.count++;
      this.#events.onRequest(stream, head);
      if (endsStream) this.#remoteClosed(stream);
    }
  }

  #takeTrailers(stream: Stream, head: RequestHead, endsStream: boolean): void {
    const wasClosed = stream.isRemoteClosed;
    stream.isRemoteClosed = endsStream;
    if (wasClosed) this.#sender.reset(stream, errorCodes.streamClosed);
    else if (!endsStream || !head.isTrailer || !stream.isAsDeclared)
      this.#sender.reset(stream, errorCodes.protocolError);
    else this.#remoteClosed(stream);
  }

  #takeLateData(streamId: number, stream: Stream | undefined): void {
    if (streamId > this.#lastId) throw protocolError("DATA of a stream that was never opened");
    if (this.#resetByUs.has(streamId)) return;
    this.#events.onIdleWork();
    if (stream !== undefined) this.#sender.reset(stream, errorCodes.streamClosed);
    else this.#sender.resetId(streamId, errorCodes.streamClosed);
  }

  #refuse(streamId: number, code: ErrorCode): void {
    this.#events.onIdleWork();
    this.#sender.resetId(streamId, code);
    this.#rememberReset(streamId);
  }

  #remoteClosed(stream: Stream): void {
    stream.reader?.onEnd();
    if (stream.isLocalClosed) this.#remove(stream);
  }

  #forget(stream: Stream): void {
    this.#sender.forget(stream);
    const wasAnswered = stream.isLocalClosed;
    stream.isLocalClosed = true;
    stream.isRemoteClosed = true;
    this.#remove(stream);
    if (!wasAnswered) stream.reader?.onGone();
  }

  #remove(stream: Stream): void {
    if (!this.#streams.delete(stream.id)) return;
    this.#all.count--;
    this.#events.onRemoved();
  }

  #rememberReset(streamId: number): void {
    this.#resetByUs.add(streamId);
    if (this.#resetByUs.size <= MOST_RESET_REMEMBERED) return;
    const [oldest] = this.#resetByUs;
    this.#resetByUs.delete(oldest!);
  }
}

function dependsOnItself({ streamId, bytes, from }: Frame): boolean {
  return (bytes.readUInt32BE(from) & 0x7fff_ffff) === streamId;
}

/** Leaves the payload between `from` and `to`. */
function skipPadding(frame: Frame): void {
  if ((frame.flags & flags.padded) === 0) return;
  if (frame.from === frame.to) throw sizeError("a padded frame");
  const padding = frame.bytes[frame.from]!;
  frame.from += 1;
  frame.to -= padding;
  if (frame.to < frame.from) throw protocolError("more padding than payload");
}
