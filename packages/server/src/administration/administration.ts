/**
 * The admin API under /admin/v1. It changes rules through the configuration and is never on the check path.
 *
 * The life of a request, and the error exit of each step:
 *   token     before the body is read       401 `unauthorized`, 403 `forbidden`, 429 `too-many-attempts`
 *   origin    with the session cookie       403 `cross-origin`
 *   body      JSON, bounded                 413 `body-too-large`, 415 `unsupported-media-type`
 *   schema    no unknown or wrong fields    400 `invalid-request`; a rule's mistakes 400 `invalid-rules`, all of them
 *   change    one version, or nothing       412 `version-mismatch`, 409 ..., 503 `database-unavailable`
 */
import type { FastifyInstance } from "fastify";
import { answerNotFound } from "../http/error-handlers.js";
import { acceptJson } from "../http/json-body.js";
import { guard } from "./access.js";
import { registerAlertRoutes } from "./alert-routes.js";
import { registerAuditRoutes } from "./audit-routes.js";
import { registerBlockRoutes } from "./block-routes.js";
import { registerBulkRoutes } from "./bulk-routes.js";
import { registerKeyRoutes } from "./key-routes.js";
import { largeBodies, validatorCompiler } from "./large-bodies.js";
import { registerRegionRoutes } from "./region-routes.js";
import type { AdministrationOptions } from "./route.js";
import { registerRuleRoutes } from "./rule-routes.js";
import { registerSessionRoutes } from "./session-routes.js";
import { registerSsoRoutes } from "./sso-routes.js";
import { registerStatsRoutes } from "./stats-routes.js";
import { registerStoreRoutes } from "./store-routes.js";
import { registerTimelineRoutes } from "./timeline-routes.js";
import { registerTokenRoutes } from "./token-routes.js";
import { registerTryRoutes } from "./try-routes.js";
import { registerVersionRoutes } from "./version-routes.js";

export { registerDashboard } from "./dashboard-files.js";
export { registerGuide } from "./guide-files.js";
export type { AdministrationOptions } from "./route.js";
export { SingleSignOn } from "./single-sign-on.js";
export { openTokens, readFirstToken, type Tokens } from "./tokens.js";

export async function registerAdministration(app: FastifyInstance, options: AdministrationOptions): Promise<void> {
  await app.register(
    async (admin) => {
      // Set again in this scope, so that unknown paths under the prefix require a token too.
      admin.setNotFoundHandler(answerNotFound);
      admin.setValidatorCompiler(validatorCompiler as never);
      // Response schemas are documentation only; they do not strip fields.
      admin.setSerializerCompiler(() => JSON.stringify);
      acceptJson(
        admin,
        largeBodies(() => options.configuration.current.rules),
      );
      // Responses contain rules, keys and tokens: no caching, no MIME sniffing.
      admin.addHook("onRequest", async (_request, reply) => {
        reply.header("cache-control", "no-store").header("x-content-type-options", "nosniff");
      });
      guard(admin, options);
      registerRuleRoutes(admin, options);
      registerBulkRoutes(admin, options);
      registerVersionRoutes(admin, options);
      registerAuditRoutes(admin, options);
      registerKeyRoutes(admin, options);
      registerBlockRoutes(admin, options);
      registerTokenRoutes(admin, options);
      registerStatsRoutes(admin, options);
      registerTimelineRoutes(admin, options);
      if (options.readStore !== undefined) registerStoreRoutes(admin, options.readStore);
      registerRegionRoutes(admin, options);
      if (options.alerts !== undefined) registerAlertRoutes(admin, options, options.alerts);
      if (options.traffic !== undefined) registerTryRoutes(admin, options, options.traffic);
      registerSessionRoutes(admin, options);
      registerSsoRoutes(admin, options);
    },
    { prefix: "/admin/v1" },
  );
}
