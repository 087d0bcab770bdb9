/**
 * Which role each route asks for. A route that names none does not start: forgetting it must not open it.
 * The token, or the dashboard's session cookie, is looked at before the body is read: a stranger cannot make the server parse anything.
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
    /** The least role that may call the route; `anyone` for signing in and out. */
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
      // Without either nothing was tried: the dashboard asks who is signed in before anybody is.
      if (credential) refuseFailure(reply, await options.noteFailure?.(request, credential));
      throw new ServiceError("unauthorized", "authorization: expected Bearer and an admin token");
    }
    if (needed !== undefined && ranks[caller.role] < ranks[needed]) {
      throw new ServiceError("forbidden", `this needs the role ${needed}; the token ${caller.name} is ${caller.role}`);
    }
    callers.set(request, caller);
  });
}

/** A token wins over a cookie: it is never sent by a browser on its own. */
async function callerBehind(request: FastifyRequest, tokens: Tokens): Promise<Caller | undefined> {
  const { authorization, cookie } = request.headers;
  const session = authorization === undefined ? sessionCookieOf(cookie) : undefined;
  const caller = session === undefined ? await tokens.authenticate(authorization) : await tokens.resume(session);
  const stranger = session === undefined || caller === undefined ? undefined : whyForgeable(request);
  if (stranger !== undefined) throw new ServiceError("cross-origin", stranger);
  return caller;
}

/** Whether what a request carried would let it in now. For a stream, which goes on after its token was looked at. */
export async function isStillKnown(request: FastifyRequest, tokens: Tokens): Promise<boolean> {
  return await callerBehind(request, tokens).then(
    (caller) => caller !== undefined,
    () => false,
  );
}

/** Throws where an address has failed too often: `waitSeconds` is what `noteFailure` resolved with. */
export function refuseFailure(reply: FastifyReply, waitSeconds: number | undefined): void {
  if (waitSeconds === undefined) return;
  // A guess then costs a connection.
  reply.header("retry-after", waitSeconds).header("connection", "close");
  throw new ServiceError(
    "too-many-attempts",
    `too many failed attempts from this address; try again in ${waitSeconds} s. A token that is right still passes`,
  );
}

/** The authenticated caller. Every route is behind the guard. */
export function callerOf(request: FastifyRequest): Caller {
  return callers.get(request)!;
}
