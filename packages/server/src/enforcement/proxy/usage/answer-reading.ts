/**
 * Decides how to read an answer, by its headers. The proxy requests answers without compression; if a server compresses anyway, the answer
 * is decoded, and forwarded decoded.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type BodyKind, bodyKind } from "sluice/internal";
import { DecodedBody } from "./decoded-body.js";

type Decoding = () => Duplex;

const decodings: ReadonlyMap<string, Decoding> = new Map<string, Decoding>([
  ["gzip", () => new DecodedBody("gzip")],
  ["x-gzip", () => new DecodedBody("gzip")],
  ["deflate", () => new DecodedBody("deflate")],
  ["br", () => new DecodedBody("br")],
]);

interface AnswerReading {
  readonly kind: BodyKind;
  /** The body itself is an image or audio, such as speech requested without events. */
  readonly isMedia: boolean;
  readonly decoding: Decoding | undefined;
}

const mediaType = /^(?:audio|image|video)\//i;

/** `method` of the request: the answer to HEAD has a body's headers but no body, which every decoder would take for a truncated one. */
export function readingOf(
  { headers, statusCode }: Pick<IncomingMessage, "headers" | "statusCode">,
  method: string | undefined,
): AnswerReading {
  if (method === "HEAD" || statusCode === 204 || statusCode === 304)
    return { kind: "unread", isMedia: false, decoding: undefined };
  const coding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  const decoding = decodings.get(coding);
  const isReadable = coding === "identity" || coding === "" || decoding !== undefined;
  const type = headers["content-type"] ?? "";
  const kind = isReadable ? bodyKind(type) : "unread";
  return { kind, isMedia: kind === "unread" && mediaType.test(type), decoding };
}
