/**
 * Serves the dashboard's built files under `/`. They are loaded into memory at startup: a request looks up a key in a map, never a path on
 * disk.
 * Only the pages in the table return the dashboard; all other paths (/v1, /admin, /metrics) are answered by their own routes or are not
 * found, so that an API never returns HTML. A browser that opens a mistyped URL gets a 404 with the console, which shows the URL.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ConfigurationLog } from "../configuration/configuration.js";
import { dashboardHeaders } from "../http/security-headers.js";
import { readFiles, sendFile } from "../http/static-files.js";

/** The dashboard's pages; each may have sub-paths. Implemented in `packages/dashboard/src/app.tsx`. */
const pages = [
  "rules",
  "new-rule",
  "wall",
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

/** First path segments used by programs. */
const programs = new Set(["v1", "admin", "docs", "metrics", "assets", "openapi.json"]);

export function registerDashboard(
  app: FastifyInstance,
  { folder, log }: { folder: string; log: Pick<ConfigurationLog, "info"> },
): void {
  const files = readFiles(folder);
  const page = files.get("index.html");
  if (page === undefined) log.info("the dashboard is not built, so / only says so; `npm run build` builds it");
  const route = { schema: { hide: true } };
  const showPage = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
    page === undefined ? sendHint(reply) : sendFile(request, reply, page);
  app.get("/", route, showPage);
  for (const name of pages) {
    app.get(`/${name}`, route, showPage);
    app.get(`/${name}/*`, route, showPage);
  }
  for (const [name, file] of files) {
    if (name !== "index.html") app.get(`/${name}`, route, async (request, reply) => sendFile(request, reply, file));
  }
  if (page === undefined) return;
  app.addHook("onRequest", async (request, reply) => {
    if (request.is404 && isVisit(request)) return await sendFile(request, reply.code(404), page);
  });
}

/** Whether a person opens a page: browsers accept text/html then, and only then. */
function isVisit({ method, url, headers: { accept = "" }, server }: FastifyRequest): boolean {
  const path = url.split("?", 1)[0]!;
  if (method !== "GET" && method !== "HEAD") return false;
  // A path that supports other methods belongs to an API.
  return /\btext\/html\b/i.test(accept) && !programs.has(path.split("/", 2)[1]!) && server.methodsOf(path).length === 0;
}

function sendHint(reply: FastifyReply): FastifyReply {
  return reply
    .headers(dashboardHeaders)
    .code(503)
    .type("text/plain; charset=utf-8")
    .send("The dashboard is not built. Run `npm run build` and start again. The API is there: see /docs.\n");
}
