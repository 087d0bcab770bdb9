/**
 * The dashboard's built files, served under `/`. They are read into memory at the start: a request names a key of a map, never a path on disk.
 * Only the pages in the table answer with the page itself; any other path (/v1, /admin, /metrics, a typo) is answered by its own
 * route or is not found, so that an API never answers HTML.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ConfigurationLog } from "../configuration/configuration.js";
import { dashboardHeaders } from "../http/security-headers.js";

/** Pages of the dashboard; each may have paths below it. `packages/dashboard/src/app.tsx` shows them. */
const pages = [
  "rules",
  "new-rule",
  "history",
  "keys",
  "top-keys",
  "spend",
  "load",
  "alerts",
  "store",
  "regions",
  "audit",
  "tokens",
] as const;

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

interface ServedFile {
  readonly type: string;
  readonly plain: Buffer;
  /** Made when it is first asked for: a start need not wait for it. */
  readonly gzipped: () => Buffer;
  readonly etag: string;
  /** Its name changes with its content. */
  readonly isHashed: boolean;
}

export function registerDashboard(
  app: FastifyInstance,
  { folder, log }: { folder: string; log: Pick<ConfigurationLog, "info"> },
): void {
  const files = readFiles(folder);
  const page = files.get("index.html");
  if (page === undefined) log.info("the dashboard is not built, so / only says so; `npm run build` builds it");
  const route = { schema: { hide: true } };
  const showPage = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
    page === undefined ? sendHint(reply) : send(request, reply, page);
  app.get("/", route, showPage);
  for (const name of pages) {
    app.get(`/${name}`, route, showPage);
    app.get(`/${name}/*`, route, showPage);
  }
  for (const [name, file] of files) {
    if (name !== "index.html") app.get(`/${name}`, route, async (request, reply) => send(request, reply, file));
  }
}

function readFiles(folder: string): Map<string, ServedFile> {
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

function send(request: FastifyRequest, reply: FastifyReply, file: ServedFile): FastifyReply {
  reply
    .headers(dashboardHeaders)
    .header("cache-control", file.isHashed ? "public, max-age=31536000, immutable" : "no-cache")
    .header("vary", "accept-encoding")
    .header("etag", file.etag);
  if (request.headers["if-none-match"] === file.etag) return reply.code(304).send();
  reply.type(file.type);
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0+)?\s*(?:,|$))/.test(request.headers["accept-encoding"] ?? "");
  return takesGzip ? reply.header("content-encoding", "gzip").send(file.gzipped()) : reply.send(file.plain);
}

function sendHint(reply: FastifyReply): FastifyReply {
  return reply
    .headers(dashboardHeaders)
    .code(503)
    .type("text/plain; charset=utf-8")
    .send("The dashboard is not built. Run `npm run build` and start again. The API is there: see /docs.\n");
}
