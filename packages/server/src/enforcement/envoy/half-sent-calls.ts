/** Applies the budget for incomplete messages to grpc-js streams (see `grpc/message-budget.ts` for the reasons). */
import { constants, type Http2Server, type Http2Session, type ServerHttp2Stream } from "node:http2";
import { type HalfSentBounds, MessageBudget, type Peer } from "../../grpc/message-budget.js";

/** gRPC message prefix: a flag and the length. */
const PREFIX_BYTES = 5;

/** Tracks the messages of a stream by their length prefixes. */
class MessageLength {
  /** Bytes of the current message still to come. */
  missing = 0;
  /** Number of messages that have started. */
  begun = 0;
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
      this.begun++;
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
      const before = message.begun;
      message.read(chunk);
      if (message.missing === 0 || isOver) {
        release();
        release = () => undefined;
      } else if (message.begun > before) {
        // Also when it starts in the chunk that ends another message.
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
