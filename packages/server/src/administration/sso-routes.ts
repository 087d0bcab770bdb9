/** Single sign-on routes: the redirect to the provider, and the callback that opens a session. */
import { stringifySetCookie } from "cookie";
import type { FastifyInstance, FastifyReply } from "fastify";
import Type from "typebox";
import { cookieValue } from "../http/cookies.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { sessionCookie } from "./sessions.js";
import { CALLBACK, SIGN_IN_MS, SignInFailed } from "./single-sign-on.js";

const COOKIE = "sluice-sso";
const PATH = CALLBACK.replace(/\/callback$/, "");
const redirect = Type.Unsafe<unknown>({ type: "null", description: "To the provider, or to the console." });
const anything = Type.Object({}, { additionalProperties: true });

export function registerSsoRoutes(
  app: FastifyInstance,
  { tokens, log, sso, noteFailure }: AdministrationOptions,
): void {
  app.get(
    "/session/methods",
    describeRoute({
      role: "anyone",
      summary: "How people sign in to the dashboard",
      reply: Type.Object({ token: Type.Boolean(), sso: Type.Boolean() }, { title: "SignInMethods" }),
    }),
    async () => ({ token: true, sso: sso !== undefined }),
  );
  if (sso === undefined) return;

  app.get<{ Querystring: { to?: string } }>(
    "/session/sso",
    describeRoute({
      role: "anyone",
      summary: "Single sign-on: sends the browser to the provider",
      querystring: Type.Object(
        { to: Type.Optional(Type.String({ maxLength: 1_024 })) },
        { additionalProperties: false },
      ),
      status: 303,
      reply: redirect,
    }),
    async (request, reply) => {
      try {
        const { url, cookie } = await sso.begin(request.query.to);
        return reply.header("set-cookie", stateCookie(cookie, sso.isSecure)).redirect(url, 303);
      } catch (error) {
        return fail(reply, error);
      }
    },
  );

  app.get(
    "/session/sso/callback",
    describeRoute({
      role: "anyone",
      summary: "Single sign-on: the way back from the provider",
      querystring: anything,
      status: 303,
      reply: redirect,
    }),
    async (request, reply) => {
      const query = new URL(request.raw.url ?? "", "http://x").search.slice(1);
      // An authorization code can be used once: delete its cookie, whatever the outcome.
      const gone = stateCookie("", sso.isSecure);
      try {
        const { name, role, to } = await sso.finish(query, cookieValue(request.headers.cookie, COOKIE) || undefined);
        const value = tokens.openPersonalSession({ name, role }, request.headers["user-agent"]);
        await tokens.noteSignIn(name, role);
        const cookies = [gone, sessionCookie({ value, isSecure: sso.isSecure })];
        return reply.header("set-cookie", cookies).redirect(to, 303);
      } catch (error) {
        if (error instanceof SignInFailed) await noteFailure?.(request, "sign-in");
        return fail(reply.header("set-cookie", gone), error);
      }
    },
  );

  function fail(reply: FastifyReply, error: unknown): FastifyReply {
    if (!(error instanceof SignInFailed)) throw error;
    log.warn("single sign-on failed", { why: error.why, error: error.message });
    return reply.redirect(`/?sso=${error.why}`, 303);
  }
}

/** `Lax`: the callback is a cross-site navigation from the provider, on which `Strict` cookies are not sent. */
function stateCookie(value: string, secure: boolean): string {
  const maxAge = value === "" ? 0 : SIGN_IN_MS / 1_000;
  return stringifySetCookie({ name: COOKIE, value, path: PATH, maxAge, httpOnly: true, sameSite: "lax", secure });
}
