/** Named tokens: created, listed without their secret, deleted. */
import type { FastifyInstance } from "fastify";
import { SluiceError } from "sluice";
import { parseDuration } from "sluice/internal";
import type { Role } from "../configuration/repository/rule-repository.js";
import { callerOf } from "./access.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { newToken, tokenBody, tokenList, tokenName } from "./schemas.js";

const LONGEST_LIFE_MS = 10 * 365 * 24 * 3_600_000;

function lifeMs(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= 1_000 && ms <= LONGEST_LIFE_MS) return ms;
  throw new SluiceError(
    "invalid-request",
    `expiresIn: expected a duration between "1s" and "3650d", got ${JSON.stringify(text)}`,
  );
}

export function registerTokenRoutes(app: FastifyInstance, { tokens }: AdministrationOptions): void {
  app.get(
    "/tokens",
    describeRoute({ role: "admin", summary: "Named tokens", reply: tokenList, errors: ["rules-from-file"] }),
    async () => {
      const listed = await tokens.list();
      return {
        tokens: listed.map(({ createdAtMs, expiresAtMs, lastUsedAtMs, ...token }) => ({
          ...token,
          createdAt: new Date(createdAtMs).toISOString(),
          ...(expiresAtMs !== undefined && { expiresAt: new Date(expiresAtMs).toISOString() }),
          ...(lastUsedAtMs !== undefined && { lastUsedAt: new Date(lastUsedAtMs).toISOString() }),
        })),
      };
    },
  );

  app.post<{ Body: { name: string; role: Role; expiresIn?: string } }>(
    "/tokens",
    describeRoute({
      role: "admin",
      summary: "Makes a token, shown once",
      body: tokenBody,
      reply: newToken,
      status: 201,
      errors: ["token-exists"],
    }),
    async (request, reply) => {
      const { name, role, expiresIn } = request.body;
      const expiresAtMs = expiresIn === undefined ? undefined : Date.now() + lifeMs(expiresIn);
      const token = await tokens.create({ name, role, by: callerOf(request).name, expiresAtMs });
      const expires = expiresAtMs === undefined ? {} : { expiresAt: new Date(expiresAtMs).toISOString() };
      return reply.code(201).send({ name, role, token, ...expires });
    },
  );

  const deletion = { role: "admin", status: 204, isChange: true, errors: ["unknown-token"] } as const;

  app.delete<{ Params: { name: string } }>(
    "/tokens/:name",
    describeRoute({ ...deletion, summary: "Deletes a token", params: tokenName }),
    async (request, reply) => {
      await tokens.remove(request.params.name, callerOf(request).name);
      return reply.code(204).send();
    },
  );

  app.delete<{ Querystring: { name: string } }>(
    "/tokens",
    describeRoute({ ...deletion, summary: "Deletes the token that ?name= names", querystring: tokenName }),
    async (request, reply) => {
      await tokens.remove(request.query.name, callerOf(request).name);
      return reply.code(204).send();
    },
  );
}
