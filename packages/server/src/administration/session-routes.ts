/**
 * Signing in and out of the dashboard. A token comes in once and goes out as a cookie that only the browser itself can read.
 * Attempts are limited by Sluice: ten that fail in any minute from one address.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { createLimiter } from "sluice";
import { callerOf } from "./access.js";
import { whyNotOwnPage } from "./own-page.js";
import { AdministrationError } from "./problem.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { session, sessionBody } from "./schemas.js";
import { sessionCookie } from "./sessions.js";

const MOST_FAILURES = 10;

export function registerSessionRoutes(
  app: FastifyInstance,
  { tokens, addressOf = ({ ip }) => ip }: AdministrationOptions,
): void {
  // Of this process alone: a fleet multiplies the attempts, and a token of 256 bits does not mind.
  const attempts = createLimiter({
    rules: [
      {
        id: "sign-in",
        key: ["ip"],
        algorithm: "rolling-window",
        limit: MOST_FAILURES,
        window: "1m",
        storage: "packed",
      },
    ],
  });
  app.addHook("onClose", () => attempts.close());

  app.post<{ Body: { token: string } }>(
    "/session",
    describeRoute({
      role: "anyone",
      summary: "Signs in: a session cookie for a token",
      body: sessionBody,
      reply: session,
    }),
    async (request, reply) => {
      const stranger = whyNotOwnPage(request);
      if (stranger !== undefined) throw new AdministrationError("cross-origin", stranger);
      const decision = await attempts.check({ ip: addressOf(request) });
      if (!decision.allowed) {
        const seconds = Math.ceil(decision.retryAfterMs / 1000);
        reply.header("retry-after", seconds);
        throw new AdministrationError("too-many-attempts", `too many failed attempts; try again in ${seconds} s`);
      }
      const opened = await tokens.openSession(request.body.token);
      if (opened === undefined) throw new AdministrationError("unauthorized", "token: not known here");
      await attempts.refund(decision);
      const { value, name, role } = opened;
      return reply
        .header("set-cookie", sessionCookie({ value, isSecure: isSecure(request) }))
        .header("cache-control", "no-store")
        .send({ name, role });
    },
  );

  app.get(
    "/session",
    describeRoute({ role: "viewer", summary: "Who is signed in", reply: session }),
    async (request, reply) => {
      const { name, role } = callerOf(request);
      return reply.header("cache-control", "no-store").send({ name, role });
    },
  );

  app.delete(
    "/session",
    describeRoute({ role: "anyone", summary: "Signs out", status: 204 }),
    async (request, reply) => {
      const stranger = whyNotOwnPage(request);
      if (stranger !== undefined) throw new AdministrationError("cross-origin", stranger);
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
