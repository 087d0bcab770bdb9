/**
 * Memory that calls may hold before they are whole. A message may have a megabyte, a connection a thousand calls: without a budget, one
 * peer could make the service hold a gigabyte until the calls' deadline ends them.
 *
 * A message that is not whole with its first bytes reserves what is missing: its length stands in front of it. One that finds no room is paused:
 * it holds at most what flow control lets its client send (64 KiB). Nothing is refused, so no client gets through by a long header where
 * Envoy fails open; and as each reserves all it needs, those with a reservation always can end.
 */
import { constants, type Http2Server, type Http2Session, type ServerHttp2Stream } from "node:http2";

const BYTES_PER_CONNECTION = 8 * 2 ** 20;
const BYTES_IN_ALL = 64 * 2 ** 20;
/** Calls that are not whole. Envoy sends calls whole, so a connection of its own rarely has one. */
const MOST_HALF_SENT = 4_096;
/** Of a gRPC message: a flag, and its length. */
const PREFIX_BYTES = 5;

interface Peer {
  halfSent: number;
  reserved: number;
}

interface Waiting {
  readonly peer: Peer;
  readonly bytes: number;
  readonly resume: () => void;
}

/** Follows the messages of a stream by the length that stands in front of each. */
class MessageLength {
  /** Bytes of the present message that have not come. */
  missing = 0;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;

  read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.missing > 0) {
        const taken = Math.min(this.missing, chunk.length - at);
        this.missing -= taken;
        at += taken;
        continue;
      }
      this.#prefix[this.#prefixBytes++] = chunk[at++]!;
      if (this.#prefixBytes < PREFIX_BYTES) continue;
      this.#prefixBytes = 0;
      this.missing = this.#prefix.readUInt32BE(1);
    }
  }
}

export class HalfSentCalls {
  readonly #peers = new Map<Http2Session, Peer>();
  /** In the order of their arrival. */
  readonly #waiting = new Set<Waiting>();
  #halfSent = 0;
  #reserved = 0;

  watch(server: Http2Server): void {
    server.on("stream", (stream: ServerHttp2Stream) => this.#follow(stream));
  }

  #follow(stream: ServerHttp2Stream): void {
    const { session } = stream;
    if (session === undefined || stream.destroyed) return;
    const peer = this.#peerOf(session);
    this.#halfSent++;
    peer.halfSent++;
    let release = (): void => undefined;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      this.#halfSent--;
      peer.halfSent--;
      release();
    };
    stream.once("end", over);
    stream.once("close", over);
    if (this.#hasTooMany(peer)) {
      stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    const message = new MessageLength();
    stream.on("data", (chunk: Buffer) => {
      const before = message.missing;
      message.read(chunk);
      if (message.missing === 0 || isOver) {
        release();
        release = () => undefined;
      } else if (before === 0) {
        release();
        release = this.#reserve({ peer, bytes: message.missing, stream });
      }
    });
  }

  /** Beyond the bound, those are ended whose connection has more than its share. */
  #hasTooMany(peer: Peer): boolean {
    return this.#halfSent > MOST_HALF_SENT && peer.halfSent > MOST_HALF_SENT / this.#peers.size;
  }

  /** Returns how to give the bytes back. */
  #reserve({ peer, bytes, stream }: { peer: Peer; bytes: number; stream: ServerHttp2Stream }): () => void {
    let isHeld = false;
    const waiting: Waiting = {
      peer,
      bytes,
      resume: () => {
        isHeld = true;
        stream.resume();
      },
    };
    if (this.#fits(waiting)) {
      this.#hold(waiting);
      isHeld = true;
    } else {
      this.#waiting.add(waiting);
      stream.pause();
    }
    return () => {
      this.#waiting.delete(waiting);
      if (!isHeld) return;
      peer.reserved -= bytes;
      this.#reserved -= bytes;
      this.#admit();
    };
  }

  /** A message that is larger than a budget is let in alone; grpc-js refuses it by its length. */
  #fits({ peer, bytes }: Waiting): boolean {
    const fitsPeer = peer.reserved === 0 || peer.reserved + bytes <= BYTES_PER_CONNECTION;
    return fitsPeer && (this.#reserved === 0 || this.#reserved + bytes <= BYTES_IN_ALL);
  }

  #hold({ peer, bytes }: Waiting): void {
    peer.reserved += bytes;
    this.#reserved += bytes;
  }

  #admit(): void {
    for (const waiting of this.#waiting) {
      if (!this.#fits(waiting)) continue;
      this.#waiting.delete(waiting);
      this.#hold(waiting);
      waiting.resume();
    }
  }

  #peerOf(session: Http2Session): Peer {
    const known = this.#peers.get(session);
    if (known !== undefined) return known;
    const peer = { halfSent: 0, reserved: 0 };
    this.#peers.set(session, peer);
    session.once("close", () => this.#peers.delete(session));
    return peer;
  }
}
