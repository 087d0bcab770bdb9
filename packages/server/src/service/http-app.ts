/** The HTTP port: the edge with the routes for health, data plane, administration and dashboard. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { registerAdministration, registerDashboard, registerGuide } from "../administration/administration.js";
import { registerEnvoyJson } from "../enforcement/envoy/json-route.js";
import { registerForwardAuth } from "../enforcement/forward-auth/forward-auth.js";
import { registerDataPlane } from "../enforcement/http/data-plane.js";
import { createFastCheck } from "../enforcement/http/fast-check.js";
import { registerHealthRoutes } from "../enforcement/http/health-routes.js";
import { createEdge } from "../http/edge.js";
import { consoleFolder, guideFolder } from "../own-package.js";
import type { TransportParts } from "./open-transports.js";
import { recordedTraffic } from "./recorded-traffic.js";

export async function createHttpApp(parts: TransportParts): Promise<FastifyInstance> {
  const { instance, configuration, monitoring, attributes, envoy, tokens, failures, carriesToken, headers } = parts;
  const { settings, log, limiter, storeKind } = instance;
  const { observe, figures, readStore, readBlockedKeys, readRegions, alerts } = monitoring;
  const { region } = settings;
  const app = createEdge({
    log,
    tls: parts.tls,
    asksForToken: carriesToken !== undefined,
    isLameDuck: () => parts.ending.lameDuck,
    isOwnHost: parts.isOwnHost,
    fastPath: (turnsAway) => createFastCheck({ limiter, observe, region, carriesToken, turnsAway, log }),
  });
  registerHealthRoutes(app, {
    limiter,
    storeKind,
    isDraining: () => parts.ending.draining,
    isKnown: (request) => isKnown(parts, request),
    configurationStatus: () => configuration.status(),
    metricsText: parts.metricsText,
  });
  await registerDataPlane(app, {
    limiter,
    observe,
    region,
    carriesToken,
    noteFailure: failures.ofDataPlane,
    gateways: (dataPlane) => {
      registerForwardAuth(dataPlane, { limiter, observe, headers, attributes });
      registerEnvoyJson(dataPlane, { shouldRateLimit: envoy.shouldRateLimit, observe });
    },
  });
  const noteFailure = failures.ofAdmin;
  await registerAdministration(app, {
    configuration,
    limiter,
    tokens,
    sso: parts.sso,
    log,
    figures,
    traffic: recordedTraffic({ recording: instance.recording, configuration, figures }),
    readStore,
    readBlockedKeys,
    readRegions,
    alerts,
    alertPolicies: alerts && parts.alertPolicies,
    prices: parts.llm?.prices?.list,
    region,
    noteFailure,
  });
  registerDashboard(app, { folder: consoleFolder, log });
  registerGuide(app, { folder: guideFolder });
  await app.ready();
  return app;
}

/** Whether a request carries a valid token of either plane. An invalid one is recorded as a failed authentication. */
async function isKnown({ carriesToken, tokens, failures }: TransportParts, request: FastifyRequest): Promise<boolean> {
  const { authorization } = request.headers;
  if (authorization === undefined) return false;
  if (carriesToken?.(authorization) || (await tokens.authenticate(authorization)) !== undefined) return true;
  await failures.ofAdmin(request, "bearer");
  return false;
}
