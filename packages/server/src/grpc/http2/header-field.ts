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

/** What the name alone decides; `te` is judged by its value too. */
type NameKind = FieldKind | "te";

export interface HeaderField {
  readonly name: string;
  readonly value: string;
  readonly kind: FieldKind;
  readonly nameKind: NameKind;
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
  return fieldOf({ name, nameKind: nameKindOf(name) }, value);
}

/**
 * A field with the name of one in the table. The name was checked when it was added: three bytes of a block can refer to a name of 4 KiB,
 * and a frame holds thousands of them.
 */
export function fieldOf({ name, nameKind }: Pick<HeaderField, "name" | "nameKind">, value: string): HeaderField {
  return {
    name,
    value,
    nameKind,
    kind: kindOf(nameKind, value),
    size: name.length + value.length + FIELD_OVERHEAD_BYTES,
  };
}

function nameKindOf(name: string): NameKind {
  if (own.has(name)) return name as FieldKind;
  // Also rejects pseudo-header fields that requests do not have, such as `:status`.
  if (!NAME.test(name) || ofConnection.has(name)) return "malformed";
  return name === "te" ? "te" : "other";
}

function kindOf(nameKind: NameKind, value: string): FieldKind {
  if (BAD_VALUE.test(value)) return "malformed";
  if (nameKind === "te") return value === "trailers" ? "other" : "malformed";
  return nameKind;
}
