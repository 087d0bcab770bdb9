/** `POST /v1/utilisation`: a backend reports its utilisation, for load-shedding rules with the signal `reported`. */
import type { FastifyInstance } from "fastify";
import { type Limiter, SluiceError } from "sluice";
import { parseDuration } from "sluice/internal";
import { type UtilisationBody, utilisationAnswer, utilisationBody } from "./schemas.js";

const DEFAULT_TTL = "10s";

export function registerUtilisationRoute(app: FastifyInstance, { limiter }: { limiter: Limiter }): void {
  app.post<{ Body: UtilisationBody }>(
    "/v1/utilisation",
    {
      schema: {
        summary: "Report how busy a backend is, for load-shedding rules",
        tags: ["checks"],
        body: utilisationBody,
        response: { 200: utilisationAnswer },
      },
    },
    async ({ body: { value, source, key, ttl = DEFAULT_TTL } }) => {
      const ttlMs = parseDuration(ttl);
      if (ttlMs === undefined) {
        const got = JSON.stringify(ttl);
        throw new SluiceError("invalid-request", `ttl: expected a duration such as "30s", got ${got}`);
      }
      await limiter.reportUtilisation(value, { source, ttlMs, ...(key !== undefined && { key }) });
      return { accepted: true, expiresAfterMs: ttlMs };
    },
  );
}
