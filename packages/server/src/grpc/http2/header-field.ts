/**
 * A header field with everything the decoder needs to know about it, computed once: most fields repeat in each request of a connection and
 * arrive as an index into the table.
 */

/** The fields that are read somewhere. All others are validated and dropped. */
const readFields = [
  "content-type",
  "grpc-timeout",
  "grpc-encoding",
  "authorization",
  "x-forwarded-for",
  "traceparent",
] as const;
export type ReadField = (typeof readFields)[number];

type FieldKind = "other" | "malformed" | ":method" | ":scheme" | ":path" | ":authority" | "content-length" | ReadField;

export interface HeaderField {
  readonly name: string;
  readonly value: string;
  readonly kind: FieldKind;
  /** Size as defined by RFC 7541, section 4.1. */
  readonly size: number;
}

export const FIELD_OVERHEAD_BYTES = 32;

const own: ReadonlySet<string> = new Set([
  ":method",
  ":scheme",
  ":path",
  ":authority",
  "content-length",
  ...readFields,
]);
/** Connection-specific fields, which HTTP/2 forbids (RFC 9113, section 8.2.2). */
const ofConnection: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);
/** A token in lower case (RFC 9113, section 8.2.1). */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const BAD_VALUE = /[\0\r\n]|^[ \t]|[ \t]$/;

export function headerField(name: string, value: string): HeaderField {
  return { name, value, kind: kindOf(name, value), size: name.length + value.length + FIELD_OVERHEAD_BYTES };
}

function kindOf(name: string, value: string): FieldKind {
  if (BAD_VALUE.test(value)) return "malformed";
  if (own.has(name)) return name as FieldKind;
  // Also rejects pseudo-header fields that requests do not have, such as `:status`.
  if (!NAME.test(name) || ofConnection.has(name)) return "malformed";
  return name === "te" && value !== "trailers" ? "malformed" : "other";
}
