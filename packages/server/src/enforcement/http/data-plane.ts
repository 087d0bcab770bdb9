/** The data plane on the HTTP edge: `/v1` and the gateway endpoints, behind the API token if one is configured. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { problem } from "../../http/problem.js";
import { sendProblem } from "../../http/write-problem.js";
import { type CheckRouteOptions, registerCheckRoutes } from "./check-routes.js";
import { registerLeaseRoutes } from "./lease-routes.js";
import { registerReservationRoutes } from "./reservation-routes.js";
import { registerUtilisationRoute } from "./utilisation-route.js";

interface DataPlaneOptions extends CheckRouteOptions {
  /** Checks an Authorization header for the API token; absent: the data plane is open. */
  readonly carriesToken: ((authorization: string | undefined) => boolean) | undefined;
  /** Records a wrong API token. Resolves when the answer may go out, with the seconds to wait if its address failed too often. */
  noteFailure(request: FastifyRequest): Promise<number | undefined>;
  /** More routes behind the same token: forward-auth, Envoy's /json. */
  readonly gateways: (app: FastifyInstance) => void;
}

export async function registerDataPlane(app: FastifyInstance, options: DataPlaneOptions): Promise<void> {
  await app.register(async (dataPlane) => {
    dataPlane.addHook("onRoute", (route) => {
      route.config = { host: "own-for-browsers", ...route.config };
    });
    askForToken(dataPlane, options);
    registerCheckRoutes(dataPlane, options);
    registerLeaseRoutes(dataPlane, options);
    registerReservationRoutes(dataPlane, options);
    registerUtilisationRoute(dataPlane, options);
    options.gateways(dataPlane);
  });
}

function askForToken(
  app: FastifyInstance,
  { carriesToken, noteFailure }: Pick<DataPlaneOptions, "carriesToken" | "noteFailure">,
): void {
  if (carriesToken === undefined) return;
  app.addHook("onRequest", async (request, reply) => {
    const { authorization } = request.headers;
    if (carriesToken(authorization)) return;
    const waitSeconds = authorization === undefined ? undefined : await noteFailure(request);
    if (waitSeconds !== undefined) reply.header("connection", "close");
    return sendProblem(reply, problem("unauthorized", "authorization: expected Bearer and the API token"));
  });
}
