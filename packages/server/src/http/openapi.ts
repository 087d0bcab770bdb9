/** OpenAPI 3.1 for every route, generated from the validation schemas, and Swagger UI. Built lazily, on the first request. */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import { docsHeaders } from "./security-headers.js";

export interface OpenApiOptions {
  readonly version: string;
  readonly asksForToken: boolean;
}

export type DocumentedRoute = Pick<RouteOptions, "method" | "url" | "schema">;

/** Headers to copy from the inner app's answer; others belong to the connection. */
const passedOn = ["content-type", "location", "etag", "last-modified", "cache-control"];

/** Call this before adding routes: they are collected as they are added. */
export function registerOpenApi(app: FastifyInstance, options: OpenApiOptions): void {
  const routes: DocumentedRoute[] = [];
  app.addHook("onRoute", ({ method, url, schema }) => {
    if (method !== "HEAD" && schema?.hide !== true) routes.push({ method, url, ...(schema && { schema }) });
  });
  let made: Promise<FastifyInstance> | undefined;
  const documentation = (): Promise<FastifyInstance> => {
    made ??= import("./documentation.js").then(({ createDocumentation }) => createDocumentation(routes, options));
    return made;
  };
  const page = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const answer = await (await documentation()).inject({ method: "GET", url: request.url });
    if (answer.statusCode === 404) {
      reply.callNotFound();
      return reply;
    }
    for (const name of passedOn) if (answer.headers[name] !== undefined) reply.header(name, answer.headers[name]);
    return reply.code(answer.statusCode).headers(docsHeaders).send(answer.rawPayload);
  };
  const hidden = { schema: { hide: true } };
  app.get("/docs", hidden, page);
  app.get("/docs/*", hidden, page);
  app.get("/openapi.json", hidden, async (_request, reply) =>
    reply.headers(docsHeaders).send((await documentation()).swagger()),
  );
}
