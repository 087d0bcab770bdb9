/** Named tokens: made, listed without their secret, deleted. */
import type { FastifyInstance } from "fastify";
import type { Role } from "../configuration/repository/rule-repository.js";
import { callerOf } from "./access.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { newToken, tokenBody, tokenList, tokenName } from "./schemas.js";

export function registerTokenRoutes(app: FastifyInstance, { tokens }: AdministrationOptions): void {
  app.get(
    "/tokens",
    describeRoute({ role: "admin", summary: "Named tokens", reply: tokenList, errors: ["rules-from-file"] }),
    async () => {
      const listed = await tokens.list();
      return {
        tokens: listed.map(({ createdAtMs, ...token }) => ({
          ...token,
          createdAt: new Date(createdAtMs).toISOString(),
        })),
      };
    },
  );

  app.post<{ Body: { name: string; role: Role } }>(
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
      const { name, role } = request.body;
      const token = await tokens.create({ name, role, by: callerOf(request).name });
      return reply.code(201).send({ name, role, token });
    },
  );

  app.delete<{ Params: { name: string } }>(
    "/tokens/:name",
    describeRoute({
      role: "admin",
      summary: "Deletes a token",
      params: tokenName,
      status: 204,
      isChange: true,
      errors: ["unknown-token"],
    }),
    async (request, reply) => {
      await tokens.remove(request.params.name, callerOf(request).name);
      return reply.code(204).send();
    },
  );
}
