/**
 * The OpenAPI 3.1 document of the routes, and Swagger UI to try them: a separate app that never listens and whose handlers never run.
 * Loaded on first request (`openapi.ts`): its libraries have more files than the rest of the service needs to start.
 */
import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import Fastify, { type FastifyInstance } from "fastify";
import type { DocumentedRoute, OpenApiOptions } from "./openapi.js";
import { finishDocument, isDocumented, type OpenApiDocument } from "./openapi-document.js";

export async function createDocumentation(
  routes: readonly DocumentedRoute[],
  { version, asksForToken }: OpenApiOptions,
): Promise<FastifyInstance> {
  const app = Fastify({
    schemaController: {
      compilersFactory: {
        buildValidator: () => (() => () => true) as never,
        buildSerializer: () => () => JSON.stringify,
      },
    },
  });
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
  for (const route of routes) {
    const method = [route.method].flat().filter(isDocumented);
    if (method.length > 0) app.route({ ...route, method, handler: async () => undefined });
  }
  await app.register(swaggerUi, { routePrefix: "/docs", uiConfig: { docExpansion: "list" } });
  await app.ready();
  return app;
}
