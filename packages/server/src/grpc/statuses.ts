/**
 * How a call ends: a code and a message, in trailers (or, where nothing came before them, in the headers).
 */
import { encodeHeaders } from "./http2/encode-headers.js";

/** Those that are used here, by the numbers that gRPC gives them. */
export const grpcCodes = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export interface GrpcStatus {
  readonly code: number;
  readonly details: string;
}

const HEADERS = { "content-type": "application/grpc", "grpc-accept-encoding": "identity,deflate,gzip" };
/** Before the first message of an answer. */
export const ANSWER_HEADERS = encodeHeaders(HEADERS, 200);
/** After the last one. */
export const OK_TRAILERS = encodeHeaders({ "grpc-status": "0" });

const MOST_DETAILS = 1_024;

/** `isOnly`: no headers were sent. */
export function statusBlock({ code, details }: GrpcStatus, { isOnly }: { isOnly: boolean }): Buffer {
  const fields = { ...(isOnly && HEADERS), "grpc-status": String(code), "grpc-message": encoded(details) };
  return encodeHeaders(fields, isOnly ? 200 : undefined);
}

/** Percent-encoded, as the protocol asks: printable ASCII stays. */
function encoded(details: string): string {
  const bytes = Buffer.from(details.slice(0, MOST_DETAILS), "utf8");
  let text = "";
  for (const byte of bytes) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    text += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return text;
}

/** A call whose client does not send it. */
export const NOT_SENT: GrpcStatus = {
  code: grpcCodes.deadlineExceeded,
  details: "the call was not sent whole in time",
};
export const PAST_DEADLINE: GrpcStatus = { code: grpcCodes.deadlineExceeded, details: "the deadline has passed" };
export const TOO_MANY: GrpcStatus = {
  code: grpcCodes.resourceExhausted,
  details: "too many calls of this connection are not whole",
};
