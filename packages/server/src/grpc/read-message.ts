/**
 * Turns a received message into a handler's request: inflates it if it is compressed, and decodes it.
 * Runs when the handler asks, not when the bytes arrive: an incomplete or unauthorised call costs no more than its bytes.
 */
import { gunzipSync, inflateSync } from "node:zlib";
import type { CallOptions } from "./call.js";
import { type Message, UnreadableMessage } from "./message-reader.js";
import { grpcCodes } from "./statuses.js";

/**
 * Zip bomb protection: a kilobyte of gzip can inflate to a megabyte. A compressed message may inflate to what any call may send within its
 * initial window (64 KiB), or beyond that to this multiple of its own size.
 */
const INFLATED_BYTES = 65_536;
const MOST_RATIO = 16;

/** Throws `UnreadableMessage`. */
export function readMessage({ bytes, isCompressed }: Message, { head, method, caller }: CallOptions): unknown {
  const { mostMessageBytes: mostBytes } = caller;
  const plain = isCompressed ? inflated(bytes, { encoding: head.get("grpc-encoding"), mostBytes }) : bytes;
  try {
    return method.requestDeserialize(plain);
  } catch {
    throw new UnreadableMessage(grpcCodes.invalidArgument, "the message cannot be read");
  }
}

export function inflated(
  bytes: Buffer,
  { encoding, mostBytes }: { encoding: string | undefined; mostBytes: number },
): Buffer {
  const inflate = encoding === "gzip" ? gunzipSync : encoding === "deflate" ? inflateSync : undefined;
  if (inflate === undefined) {
    throw new UnreadableMessage(grpcCodes.unimplemented, "grpc-encoding: expected identity, deflate or gzip");
  }
  const maxOutputLength = Math.min(mostBytes, Math.max(INFLATED_BYTES, MOST_RATIO * bytes.length));
  try {
    return inflate(bytes, { maxOutputLength });
  } catch {
    throw new UnreadableMessage(
      grpcCodes.resourceExhausted,
      `a compressed message that cannot be read: expected ${encoding} of at most ${maxOutputLength} bytes`,
    );
  }
}
