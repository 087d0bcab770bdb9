/**
 * The dashboard's built files, served under `/`. They are read into memory at the start: a request names a key of a map, never a path on disk.
 * Only the pages in the table answer with the page itself; any other path (/v1, /admin, /metrics, a typo) is answered by its own
 * route or is not found, so that an API never answers HTML.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ConfigurationLog } from "../configuration/configuration.js";
import { dashboardHeaders } from "../http/security-headers.js";
import { readFiles, sendFile } from "../http/static-files.js";

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
}

function sendHint(reply: FastifyReply): FastifyReply {
  return reply
    .headers(dashboardHeaders)
    .code(503)
    .type("text/plain; charset=utf-8")
    .send("The dashboard is not built. Run `npm run build` and start again. The API is there: see /docs.\n");
}
