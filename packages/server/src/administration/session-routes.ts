/** Signing in and out of the dashboard. A token is exchanged for an HttpOnly cookie, which scripts cannot read. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { ServiceError } from "../errors.js";
import { callerOf, refuseFailure } from "./access.js";
import { whyForgeable } from "./csrf.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { session, sessionBody, sessionId, sessionList } from "./schemas.js";
import { claimedSession, sessionCookie, sessionCookieOf } from "./sessions.js";

export function registerSessionRoutes(
  app: FastifyInstance,
  { tokens, noteFailure, configuration }: Pick<AdministrationOptions, "tokens" | "noteFailure" | "configuration">,
): void {
  // The console hides actions that could only be refused.
  const rules = configuration.repository === undefined ? ({ rulesFrom: "file" } as const) : {};
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
      const opened = await tokens.openSession(request.body.token, request.headers["user-agent"]);
      if (opened === undefined) {
        refuseFailure(reply, await noteFailure?.(request, "sign-in"));
        throw new ServiceError("unauthorized", "token: not known here");
      }
      const { value, name, role } = opened;
      return reply
        .header("set-cookie", sessionCookie({ value, isSecure: isSecure(request) }))
        .send({ name, role, ...rules });
    },
  );

  app.get(
    "/session",
    describeRoute({ role: "viewer", summary: "The signed-in name and role", reply: session }),
    async (request) => {
      const { name, role } = callerOf(request);
      return { name, role, ...rules };
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
  registerSessionList(app, tokens);
}

/** The dashboard's sessions: one's own, for admins everyone's; each can be ended. */
function registerSessionList(app: FastifyInstance, tokens: AdministrationOptions["tokens"]): void {
  app.get(
    "/sessions",
    describeRoute({
      role: "viewer",
      summary: "Open sessions of the dashboard: one's own; an admin sees all",
      reply: sessionList,
      errors: ["rules-from-file"],
    }),
    async (request) => {
      const { name, role } = callerOf(request);
      const own = claimedSession(sessionCookieOf(request.headers.cookie) ?? "")?.id;
      const found = await tokens.sessions(role === "admin" ? undefined : name);
      return { sessions: found.map((session) => ({ ...session, own: session.id === own })) };
    },
  );

  app.delete<{ Params: { id: string } }>(
    "/sessions/:id",
    describeRoute({
      role: "viewer",
      summary: "Ends a session, on every instance; only an admin ends those of others",
      params: sessionId,
      status: 204,
      isChange: true,
      errors: ["unknown-session"],
    }),
    async (request, reply) => {
      const { name, role } = callerOf(request);
      const { id } = request.params;
      const wasOpen = await tokens.endSessionOf(id, { by: name, owner: role === "admin" ? undefined : name });
      if (!wasOpen)
        throw new ServiceError("unknown-session", `there is no open session ${JSON.stringify(id)} of yours`);
      return reply.code(204).send();
    },
  );
}

/** Whether the browser uses TLS, even if a proxy terminates it: the Origin header contains the scheme. */
function isSecure({ protocol, headers }: FastifyRequest): boolean {
  return protocol === "https" || headers.origin?.startsWith("https:") === true;
}
