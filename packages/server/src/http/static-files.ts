/**
 * Serves built files from memory: a request looks up a key in a map, and never touches a path on disk (no path traversal).
 * In: a folder. Out: its files by name, and responses with type, ETag and compression.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { dashboardHeaders } from "./security-headers.js";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

export interface ServedFile {
  readonly type: string;
  readonly plain: Buffer;
  /** Compressed on first use, so as not to delay the start. */
  readonly gzipped: () => Buffer;
  readonly etag: string;
  /** Whether its name changes with its content (immutable caching). */
  readonly isHashed: boolean;
}

/** Skips files of other types; a missing folder counts as empty. */
export function readFiles(folder: string): Map<string, ServedFile> {
  let entries: string[];
  try {
    entries = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch {
    return new Map();
  }
  return new Map(
    entries.flatMap((path) => {
      const type = types[extname(path)];
      if (type === undefined) return [];
      const name = relative(folder, path).replaceAll(sep, "/");
      const plain = readFileSync(path);
      const etag = `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`;
      return [
        [name, { type, plain, gzipped: once(() => gzipSync(plain)), etag, isHashed: name.startsWith("assets/") }],
      ];
    }),
  );
}

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

export function sendFile(request: FastifyRequest, reply: FastifyReply, file: ServedFile): FastifyReply {
  reply
    .headers(dashboardHeaders)
    .header("cache-control", file.isHashed ? "public, max-age=31536000, immutable" : "no-cache")
    .header("vary", "accept-encoding")
    .header("etag", file.etag);
  if (reply.statusCode === 200 && request.headers["if-none-match"] === file.etag) return reply.code(304).send();
  reply.type(file.type);
  // PNG is compressed already.
  const takesGzip =
    file.type !== "image/png" &&
    /\bgzip\b(?!\s*;\s*q=0(?:\.0+)?\s*(?:,|$))/.test(request.headers["accept-encoding"] ?? "");
  return takesGzip ? reply.header("content-encoding", "gzip").send(file.gzipped()) : reply.send(file.plain);
}
