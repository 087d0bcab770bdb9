/**
 * Which role each route asks for. A route that names none does not start: forgetting it must not open it.
 * The token is looked at before the body is read, so a stranger cannot make the server parse anything.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Role } from "../configuration/repository/rule-repository.js";
import { AdministrationError } from "./problem.js";
import type { Caller, Tokens } from "./tokens.js";

const ranks: Readonly<Record<Role, number>> = { viewer: 0, editor: 1, admin: 2 };

declare module "fastify" {
  interface FastifyContextConfig {
    /** The least role that may call the route. */
    role?: Role;
  }
}

const callers = new WeakMap<FastifyRequest, Caller>();

export function guard(app: FastifyInstance, tokens: Tokens): void {
  app.addHook("onRoute", (route) => {
    if (route.config?.role === undefined) throw new Error(`${String(route.method)} ${route.url} asks for no role`);
  });
  app.addHook("onRequest", async (request) => {
    const caller = await tokens.authenticate(request.headers.authorization);
    if (caller === undefined) {
      throw new AdministrationError("unauthorized", "authorization: expected Bearer and an admin token");
    }
    const needed = request.routeOptions.config.role;
    if (needed !== undefined && ranks[caller.role] < ranks[needed]) {
      throw new AdministrationError(
        "forbidden",
        `this needs the role ${needed}; the token ${caller.name} is ${caller.role}`,
      );
    }
    callers.set(request, caller);
  });
}

/** Who asks. Every route is behind the guard. */
export function callerOf(request: FastifyRequest): Caller {
  return callers.get(request)!;
}
