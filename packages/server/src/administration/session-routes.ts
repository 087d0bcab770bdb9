/**
 * Signing in and out of the dashboard. A token comes in once and goes out as a cookie that only the browser itself can read.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { ServiceError } from "../errors.js";
import { callerOf, refuseFailure } from "./access.js";
import { whyForgeable } from "./csrf.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { session, sessionBody } from "./schemas.js";
import { sessionCookie, sessionCookieOf } from "./sessions.js";

export function registerSessionRoutes(
  app: FastifyInstance,
  { tokens, noteFailure }: Pick<AdministrationOptions, "tokens" | "noteFailure">,
): void {
  app.post<{ Body: { token: string } }>(
    "/session",
    describeRoute({
      role: "anyone",
      summary: "Signs in: a session cookie for a token",
      body: sessionBody,
      reply: session,
    }),
    async (request, reply) => {
      const stranger = whyForgeable(request);
      if (stranger !== undefined) throw new ServiceError("cross-origin", stranger);
      const opened = await tokens.openSession(request.body.token);
      if (opened === undefined) {
        refuseFailure(reply, await noteFailure?.(request, "sign-in"));
        throw new ServiceError("unauthorized", "token: not known here");
      }
      const { value, name, role } = opened;
      return reply.header("set-cookie", sessionCookie({ value, isSecure: isSecure(request) })).send({ name, role });
    },
  );

  app.get(
    "/session",
    describeRoute({ role: "viewer", summary: "The signed-in name and role", reply: session }),
    async (request) => {
      const { name, role } = callerOf(request);
      return { name, role };
    },
  );

  app.delete(
    "/session",
    describeRoute({ role: "anyone", summary: "Signs out", status: 204, isChange: true }),
    async (request, reply) => {
      const stranger = whyForgeable(request);
      if (stranger !== undefined) throw new ServiceError("cross-origin", stranger);
      const value = sessionCookieOf(request.headers.cookie);
      if (value !== undefined) await tokens.endSession(value);
      return reply
        .header("set-cookie", sessionCookie({ value: "", isSecure: isSecure(request) }))
        .code(204)
        .send();
    },
  );
}

/** Under TLS, also where that ends in front of us: the browser tells the scheme in its Origin. */
function isSecure({ protocol, headers }: FastifyRequest): boolean {
  return protocol === "https" || headers.origin?.startsWith("https:") === true;
}
