/** How a call ends: a status code and a message, in trailers (or in the headers, if nothing was sent before: "Trailers-Only"). */
import { encodeHeaders } from "./http2/encode-headers.js";

/** The codes used here, with gRPC's numbers. */
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
/** Response headers, before the first message. */
export const ANSWER_HEADERS = encodeHeaders(HEADERS, 200);
/** Trailers of a successful call. */
export const OK_TRAILERS = encodeHeaders({ "grpc-status": "0" });

const MOST_DETAILS = 1_024;

/** `isOnly`: no headers have been sent (Trailers-Only). */
export function statusBlock({ code, details }: GrpcStatus, { isOnly }: { isOnly: boolean }): Buffer {
  const fields = { ...(isOnly && HEADERS), "grpc-status": String(code), "grpc-message": encoded(details) };
  return encodeHeaders(fields, isOnly ? 200 : undefined);
}

/** Percent-encodes as the gRPC protocol requires; printable ASCII stays as it is. */
function encoded(details: string): string {
  const bytes = Buffer.from(details.slice(0, MOST_DETAILS), "utf8");
  let text = "";
  for (const byte of bytes) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    text += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return text;
}

/** The client did not send the call in time. */
export const NOT_SENT: GrpcStatus = {
  code: grpcCodes.deadlineExceeded,
  details: "the call was not sent whole in time",
};
export const FAILED: GrpcStatus = { code: grpcCodes.internal, details: "Sluice failed; its log says why." };
export const PAST_DEADLINE: GrpcStatus = { code: grpcCodes.deadlineExceeded, details: "the deadline has passed" };
export const TOO_MANY: GrpcStatus = {
  code: grpcCodes.resourceExhausted,
  details: "too many calls of this connection are not whole",
};
