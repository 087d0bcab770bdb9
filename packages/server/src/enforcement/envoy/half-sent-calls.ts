/**
 * The budget for messages that are not whole, held over the streams of grpc-js (`grpc/message-budget.ts` says why).
 */
import { constants, type Http2Server, type Http2Session, type ServerHttp2Stream } from "node:http2";
import { type HalfSentBounds, MessageBudget, type Peer } from "../../grpc/message-budget.js";

/** Of a gRPC message: a flag, and its length. */
const PREFIX_BYTES = 5;

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
  readonly #budget: MessageBudget;
  readonly #peers = new Map<Http2Session, Peer>();

  constructor(bounds?: HalfSentBounds) {
    this.#budget = new MessageBudget(bounds);
  }

  watch(server: Http2Server): void {
    server.on("stream", (stream: ServerHttp2Stream) => this.#follow(stream));
  }

  #follow(stream: ServerHttp2Stream): void {
    const { session } = stream;
    if (session === undefined || stream.destroyed) return;
    const peer = this.#peerOf(session);
    let release = (): void => undefined;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      this.#budget.end(peer);
      release();
    };
    stream.once("end", over);
    stream.once("close", over);
    if (!this.#budget.begin(peer)) {
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
        const { missing: bytes } = message;
        release = this.#budget.reserve({ peer, bytes, pause: () => stream.pause(), resume: () => stream.resume() });
      }
    });
  }

  #peerOf(session: Http2Session): Peer {
    const known = this.#peers.get(session);
    if (known !== undefined) return known;
    const peer = this.#budget.join();
    this.#peers.set(session, peer);
    session.once("close", () => {
      this.#peers.delete(session);
      this.#budget.leave(peer);
    });
    return peer;
  }
}
