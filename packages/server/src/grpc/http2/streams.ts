/**
 * The streams of a connection and the frames that change their state, from a request's headers to the last frame of its answer (RFC 9113,
 * section 5.1). A stream leaves the table when both sides have ended it, or one has reset it.
 */

import type { Frame } from "./frame-reader.js";
import { HeaderBlocks } from "./header-blocks.js";
import { ConnectionError, type ErrorCode, errorCodes, flags, protocolError, sizeError } from "./protocol.js";
import type { RequestHead } from "./request-head.js";
import type { Sender } from "./sender.js";
import { Stream } from "./stream.js";
import { StreamTable } from "./stream-table.js";

/** Each open stream holds memory; further calls wait at the client. */
export const MOST_STREAMS = 1_000;
/** Streams that we reset: frames that the peer sent before it saw the reset are no mistake. */
const MOST_RESET_REMEMBERED = 1_000;
/** Honest peers open windows by a share of what they read; each smaller step costs us a frame and the peer nothing. */
export const SMALL_STEP_BYTES = 1_024;

interface StreamsEvents {
  /** Must set `stream.reader`, unless it answers synchronously. */
  onRequest(stream: Stream, head: RequestHead): void;
  /** A frame that costs us work and the peer nothing. Throws if there are too many (flood). */
  onIdleWork(): void;
  /** A stream has left the table. */
  onRemoved(): void;
}

/** Number of open streams, over several connections. */
export class OpenStreams {
  count = 0;
}

export class Streams {
  readonly #events: StreamsEvents;
  readonly #sender: Sender;
  readonly #all: OpenStreams;
  readonly #streams = new StreamTable();
  readonly #resetByUs = new Set<number>();
  readonly #blocks = new HeaderBlocks();
  #lastId = 0;
  /**
   * Calls being handled, including those whose client has gone: resetting calls must not get a client more than its share (rapid reset).
   */
  #underWay = 0;
  /** GOAWAY sent: the peer must open no more streams. */
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
    return this.#streams.all();
  }

  begin(): void {
    this.#underWay++;
  }

  decided(): void {
    this.#underWay--;
  }

  /** Within a header block only CONTINUATION may follow. */
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
    if (stream.receiveWindow < 0) this.#reject(stream, errorCodes.flowControlError);
    else if (!stream.isAsDeclared) this.#reject(stream, errorCodes.protocolError);
    else {
      if (frame.to > frame.from) stream.reader?.onData(frame.bytes.subarray(frame.from, frame.to));
      // Flow control does not bound empty frames (CVE-2019-9518).
      else if (!stream.isRemoteClosed) this.#events.onIdleWork();
      if (stream.isRemoteClosed) this.#remoteClosed(stream);
    }
  }

  takeWindowUpdate({ streamId }: Frame, bytes: number): void {
    if (streamId > this.#lastId) throw protocolError("WINDOW_UPDATE of a stream that was never opened");
    const stream = this.#streams.get(streamId);
    if (stream === undefined || bytes < SMALL_STEP_BYTES) this.#events.onIdleWork();
    if (stream === undefined) return;
    if (bytes === 0) this.#sender.reset(stream, errorCodes.protocolError);
    else if (!this.#sender.widenStream(stream, bytes)) this.#reject(stream, errorCodes.flowControlError);
  }

  takeReset({ streamId, from, to }: Frame): void {
    if (to - from !== 4) throw sizeError("RST_STREAM");
    if (streamId === 0 || streamId > this.#lastId) throw protocolError("RST_STREAM of a stream that was never opened");
    this.#events.onIdleWork();
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) this.#forget(stream);
  }

  /** Priorities are ignored, but a malformed PRIORITY frame is still a stream error. */
  takePriority(frame: Frame): void {
    const { streamId, from, to } = frame;
    if (streamId === 0) throw protocolError("PRIORITY of no stream");
    this.#events.onIdleWork();
    const isSized = to - from === 5;
    if (isSized && !dependsOnItself(frame)) return;
    const stream = this.#streams.get(streamId);
    if (stream === undefined) throw isSized ? protocolError("a stream that depends on itself") : sizeError("PRIORITY");
    this.#sender.reset(stream, isSized ? errorCodes.protocolError : errorCodes.frameSizeError);
  }

  /** Applies a change of the initial window to all open streams. */
  widen(bytes: number): void {
    for (const stream of this.#streams.all()) {
      if (!this.#sender.widenStream(stream, bytes))
        throw new ConnectionError(errorCodes.flowControlError, "a window above 2^31-1");
    }
  }

  /** The stream's last frame has been sent. */
  localClosed(stream: Stream): void {
    stream.isLocalClosed = true;
    if (stream.isRemoteClosed) this.#remove(stream);
    // Answered before the request was complete: the rest of it is not needed (section 8.1).
    else this.#sender.reset(stream, errorCodes.noError);
  }

  wasReset(stream: Stream): void {
    this.#rememberReset(stream.id);
    this.#forget(stream);
  }

  /** The connection is gone. */
  forgetAll(): void {
    for (const stream of this.#streams.all()) this.#forget(stream);
  }

  #takeHead({ streamId, endsStream, head }: { streamId: number; endsStream: boolean; head: RequestHead }): void {
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) this.#takeTrailers(stream, head, endsStream);
    else if (streamId > this.#lastId) {
      this.#lastId = streamId;
      this.#open(streamId, head, endsStream);
    } else this.#events.onIdleWork();
  }

  #open(streamId: number, head: RequestHead, endsStream: boolean): void {
    const stream = new Stream(streamId, this.#sender);
    stream.isRemoteClosed = endsStream;
    stream.declaredBytes = head.contentLength;
    const isFull = this.#streams.size >= MOST_STREAMS || this.#underWay >= MOST_STREAMS;
    if (!head.isTooLarge && !(head.isRequest && stream.isAsDeclared)) this.#refuse(streamId, errorCodes.protocolError);
    // After the final GOAWAY the peer retries these elsewhere.
    else if (isFull || this.isClosed) this.#refuse(streamId, errorCodes.refusedStream);
    else {
      this.#streams.add(stream);
      this.#all.count++;
      this.#events.onRequest(stream, head);
      if (endsStream) this.#remoteClosed(stream);
    }
  }

  #takeTrailers(stream: Stream, head: RequestHead, endsStream: boolean): void {
    const wasClosed = stream.isRemoteClosed;
    stream.isRemoteClosed = endsStream;
    if (wasClosed) this.#reject(stream, errorCodes.streamClosed);
    else if (!endsStream || !head.isTrailer || !stream.isAsDeclared) this.#reject(stream, errorCodes.protocolError);
    else this.#remoteClosed(stream);
  }

  #takeLateData(streamId: number, stream: Stream | undefined): void {
    if (streamId > this.#lastId) throw protocolError("DATA of a stream that was never opened");
    this.#events.onIdleWork();
    if (this.#resetByUs.has(streamId)) return;
    if (stream !== undefined) this.#sender.reset(stream, errorCodes.streamClosed);
    else this.#sender.resetId(streamId, errorCodes.streamClosed);
  }

  #refuse(streamId: number, code: ErrorCode): void {
    this.#events.onIdleWork();
    this.#sender.resetId(streamId, code);
    this.#rememberReset(streamId);
  }

  /**
   * Resets a stream for a peer's mistake. Charged like a reset by the peer, which may have provoked it on purpose (CVE-2025-8671,
   * MadeYouReset).
   */
  #reject(stream: Stream, code: ErrorCode): void {
    this.#events.onIdleWork();
    this.#sender.reset(stream, code);
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

/** Narrows the payload (`from` to `to`) to exclude the padding. */
function skipPadding(frame: Frame): void {
  if ((frame.flags & flags.padded) === 0) return;
  if (frame.from === frame.to) throw sizeError("a padded frame");
  const padding = frame.bytes[frame.from]!;
  frame.from += 1;
  frame.to -= padding;
  if (frame.to < frame.from) throw protocolError("more padding than payload");
}
