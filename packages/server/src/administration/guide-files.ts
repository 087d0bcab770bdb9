/**
 * Serves the documentation site under /docs/guide. Its files are loaded on first request: most services never need them.
 * Only files of the site are served there, pages also without `.html`; any other path is not found.
 */
import type { FastifyInstance, FastifyReply } from "fastify";
import { dashboardHeaders } from "../http/security-headers.js";
import { readFiles, type ServedFile, sendFile } from "../http/static-files.js";

interface GuideOptions {
  readonly folder: string;
  /** For `npm run docs`: shows rebuilt pages at once. */
  readonly rereads?: boolean;
}

export function registerGuide(app: FastifyInstance, { folder, rereads = false }: GuideOptions): void {
  let files: ReadonlyMap<string, ServedFile> | undefined;
  const hidden = { schema: { hide: true } };
  // A relative redirect: a proxy may serve this under its own prefix.
  app.get("/docs/guide", hidden, async (_request, reply) => reply.headers(dashboardHeaders).redirect("guide/", 308));
  app.get<{ Params: { "*": string } }>("/docs/guide/*", hidden, async (request, reply) => {
    if (files === undefined || rereads) files = readFiles(folder);
    if (files.size === 0) return sendHint(reply);
    const name = request.params["*"];
    const file = files.get(name === "" ? "index.html" : name);
    // People type `/docs/guide/tutorial`, or copy `/docs/guide/tutorial.md` from the repository.
    const page = `${name.replace(/\.md$/, "")}.html`;
    if (file === undefined && files.has(page))
      return reply.headers(dashboardHeaders).redirect(page.slice(page.lastIndexOf("/") + 1), 308);
    if (file === undefined) {
      reply.callNotFound();
      return reply;
    }
    return sendFile(request, reply, file);
  });
}

function sendHint(reply: FastifyReply): FastifyReply {
  return reply
    .headers(dashboardHeaders)
    .code(503)
    .type("text/plain; charset=utf-8")
    .send("The guide is not built. Run `npm run build` and start again. Its text is in docs/.\n");
}
