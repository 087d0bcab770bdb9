/**
 * Refuses requests whose Host is not ours, against DNS rebinding (see own-hosts.ts). By route:
 *   own               the admin API, the dashboard, /docs, and whatever names nothing
 *   own-for-browsers  the data plane: only where an `Origin` came, which a browser sends with every POST and programs do not, so that
 *                     programs may call the service by any name
 *   any               health and metrics, which anybody may read; forward-auth, which gateways ask with their client's Host
 */
import type { FastifyInstance } from "fastify";
import { problem } from "./problem.js";
import { sendProblem } from "./write-problem.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Default: `own`. */
    host?: "own" | "own-for-browsers" | "any";
  }
}

/** Before the routes: hooks are of the routes that are added after them. */
export function refuseForeignHosts(
  app: FastifyInstance,
  { isOwnHost }: { isOwnHost(host: string | undefined): boolean },
): void {
  app.addHook("onRequest", async (request, reply) => {
    const { host: asked = "own" } = request.routeOptions.config;
    const { host, origin } = request.headers;
    if (asked === "any" || (asked === "own-for-browsers" && origin === undefined) || isOwnHost(host)) return;
    const expected = "this service's address, localhost or a name of --allowed-hosts";
    return sendProblem(reply, problem("foreign-host", `host: expected ${expected}, got ${host?.slice(0, 100)}`));
  });
}
