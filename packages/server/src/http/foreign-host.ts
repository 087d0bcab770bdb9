/**
 * Refuses requests whose Host is not ours (DNS rebinding protection, see own-hosts.ts). Per route:
 *   own               the admin API, the dashboard, /docs, and any route that sets nothing
 *   own-for-browsers  the data plane: checked only if there is an `Origin`, which browsers send with every POST and programs do not, so
 *                     that programs may call the service by any name
 *   any               health and metrics, which are public; forward-auth, which gateways call with their client's Host
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

/** Call this before adding routes: Fastify hooks apply to routes added after them. */
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
