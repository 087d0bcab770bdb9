/**
 * Access control: the role that each route requires. A route without one fails the start, so that forgetting it cannot open the route.
 * The token, or the dashboard's session cookie, is checked before the body is read: strangers cannot make the server parse anything.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Role } from "../configuration/repository/rule-repository.js";
import { ServiceError } from "../errors.js";
import { whyForgeable } from "./csrf.js";
import type { AdministrationOptions } from "./route.js";
import { sessionCookieOf } from "./sessions.js";
import type { Caller, Tokens } from "./tokens.js";

const ranks: Readonly<Record<Role, number>> = { viewer: 0, editor: 1, admin: 2 };

declare module "fastify" {
  interface FastifyContextConfig {
    /** The minimum role to call the route; `anyone` for signing in and out. */
    role?: Role | "anyone";
  }
}

const callers = new WeakMap<FastifyRequest, Caller>();

export function guard(app: FastifyInstance, options: Pick<AdministrationOptions, "tokens" | "noteFailure">): void {
  app.addHook("onRoute", (route) => {
    if (route.config?.role === undefined) throw new Error(`${String(route.method)} ${route.url} asks for no role`);
  });
  app.addHook("onRequest", async (request, reply) => {
    const needed = request.routeOptions.config.role;
    if (needed === "anyone") return;
    const caller = await callerBehind(request, options.tokens);
    if (caller === undefined) {
      const { authorization, cookie } = request.headers;
      const credential = authorization === undefined ? sessionCookieOf(cookie) && "session" : "bearer";
      // Without any credential this is no failed attempt: the dashboard checks its session before anyone has signed in.
      if (credential) refuseFailure(reply, await options.noteFailure?.(request, credential));
      throw new ServiceError("unauthorized", "authorization: expected Bearer and an admin token");
    }
    if (needed !== undefined && ranks[caller.role] < ranks[needed]) {
      throw new ServiceError("forbidden", `this needs the role ${needed}; the token ${caller.name} is ${caller.role}`);
    }
    callers.set(request, caller);
  });
}

/** A token takes precedence over a cookie: browsers never send one on their own. */
async function callerBehind(request: FastifyRequest, tokens: Tokens): Promise<Caller | undefined> {
  const { authorization, cookie } = request.headers;
  const session = authorization === undefined ? sessionCookieOf(cookie) : undefined;
  const caller = session === undefined ? await tokens.authenticate(authorization) : await tokens.resume(session);
  const stranger = session === undefined || caller === undefined ? undefined : whyForgeable(request);
  if (stranger !== undefined) throw new ServiceError("cross-origin", stranger);
  return caller;
}

/** Whether the request's credential would still be accepted. For a stream, which outlives the check at its start. */
export async function isStillKnown(request: FastifyRequest, tokens: Tokens): Promise<boolean> {
  return await callerBehind(request, tokens).then(
    (caller) => caller !== undefined,
    () => false,
  );
}

/** Throws if an address has failed too often: `waitSeconds` is the result of `noteFailure`. */
export function refuseFailure(reply: FastifyReply, waitSeconds: number | undefined): void {
  if (waitSeconds === undefined) return;
  // So each guess costs a connection.
  reply.header("retry-after", waitSeconds).header("connection", "close");
  throw new ServiceError(
    "too-many-attempts",
    `too many failed attempts from this address; try again in ${waitSeconds} s. A token that is right still passes`,
  );
}

/** The authenticated caller. All routes are guarded, so there is always one. */
export function callerOf(request: FastifyRequest): Caller {
  return callers.get(request)!;
}
