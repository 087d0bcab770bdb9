/**
 * The documentation site, served under /docs/guide. Its files are read at the first request for one of them: most services are never asked.
 * Under /docs/guide only files of the site answer, a page also without its `.html`; every other path there is not found.
 */
import type { FastifyInstance, FastifyReply } from "fastify";
import { dashboardHeaders } from "../http/security-headers.js";
import { readFiles, type ServedFile, sendFile } from "../http/static-files.js";

interface GuideOptions {
  readonly folder: string;
  /** For `npm run docs`: a page that was built again is seen at once. */
  readonly rereads?: boolean;
}

export function registerGuide(app: FastifyInstance, { folder, rereads = false }: GuideOptions): void {
  let files: ReadonlyMap<string, ServedFile> | undefined;
  const hidden = { schema: { hide: true } };
  // Relative: a proxy may serve this under a path of its own.
  app.get("/docs/guide", hidden, async (_request, reply) => reply.headers(dashboardHeaders).redirect("guide/", 308));
  app.get<{ Params: { "*": string } }>("/docs/guide/*", hidden, async (request, reply) => {
    if (files === undefined || rereads) files = readFiles(folder);
    if (files.size === 0) return sendHint(reply);
    const name = request.params["*"];
    const file = files.get(name === "" ? "index.html" : name);
    // `/docs/guide/tutorial` and `/docs/guide/tutorial.md` are typed by hand, or copied from the repository.
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
