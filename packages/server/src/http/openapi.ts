/**
 * OpenAPI 3.1 of every route, from the schemas that validate them, and a page to try it.
 */
import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { docsHeaders } from "../security-headers.js";
import { finishDocument, type OpenApiDocument } from "./openapi-document.js";

/** Before the routes: they are collected as they are added. */
export async function registerOpenApi(
  app: FastifyInstance,
  { version, asksForToken }: { version: string; asksForToken: boolean },
): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Sluice",
        version,
        description: "May this request pass now? Rate limits as rules, decided exactly, on one machine or on a fleet.",
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      tags: [
        { name: "checks", description: "Decisions" },
        { name: "leases", description: "Giving back" },
        { name: "gateways", description: "For nginx, Caddy, Traefik and Envoy" },
        { name: "health", description: "For probes and Prometheus" },
      ],
      components: {
        securitySchemes: {
          apiToken: { type: "http", scheme: "bearer", description: "The token of --api-token, where it is set." },
          adminToken: { type: "http", scheme: "bearer", description: "A token of the admin API." },
          session: { type: "apiKey", in: "cookie", name: "sluice-session", description: "The dashboard's session." },
        },
      },
    },
    transformObject: (made) =>
      "openapiObject" in made
        ? (finishDocument(made.openapiObject as OpenApiDocument, { asksForToken }) as typeof made.openapiObject)
        : made.swaggerObject,
  });
  await app.register(async (docs) => {
    docs.addHook("onSend", async (_request, reply) => {
      reply.headers(docsHeaders);
    });
    await docs.register(swaggerUi, { routePrefix: "/docs", uiConfig: { docExpansion: "list" } });
    docs.get("/openapi.json", { schema: { hide: true } }, async () => app.swagger());
  });
}
