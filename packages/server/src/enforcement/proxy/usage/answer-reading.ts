/**
 * How an answer is read, by its headers. The proxy asks for answers without compression; a server that compresses all the same is decoded,
 * and its client gets the answer decoded.
 */
import type { IncomingMessage } from "node:http";
import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { type BodyKind, bodyKind } from "sluice/internal";

type Decoding = () => Transform;

const decodings: ReadonlyMap<string, Decoding> = new Map<string, Decoding>([
  ["gzip", () => createGunzip()],
  ["x-gzip", () => createGunzip()],
  ["deflate", () => createInflate()],
  ["br", () => createBrotliDecompress()],
]);

/** `method`: of the request; the answer to HEAD has the headers of a body and no body, which no decoder takes for a whole one. */
export function readingOf(
  { headers, statusCode }: Pick<IncomingMessage, "headers" | "statusCode">,
  method: string | undefined,
): { kind: BodyKind; decoding: Decoding | undefined } {
  if (method === "HEAD" || statusCode === 204 || statusCode === 304) return { kind: "unread", decoding: undefined };
  const coding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  const decoding = decodings.get(coding);
  const isReadable = coding === "identity" || coding === "" || decoding !== undefined;
  return { kind: isReadable ? bodyKind(headers["content-type"] ?? "") : "unread", decoding };
}
