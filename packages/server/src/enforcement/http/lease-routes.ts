/**
 * The routes that give something back: release or renew a lease, refund a request. A text that no decision gave as a lease is a lease that
 * is not held, like one that was released or has expired: a caller that cleans up can mend neither.
 */
import type { FastifyInstance } from "fastify";
import { type Limiter, SluiceError } from "sluice";
import {
  type RefundBody,
  type ReleaseBody,
  type RenewBody,
  refundAnswer,
  refundBody,
  releaseAnswer,
  releaseBody,
  renewAnswer,
  renewBody,
} from "./schemas.js";

export function registerLeaseRoutes(app: FastifyInstance, { limiter }: { limiter: Limiter }): void {
  app.post<{ Body: ReleaseBody }>(
    "/v1/release",
    {
      schema: {
        summary: "Free a lease's places; twice is harmless",
        tags: ["leases"],
        body: releaseBody,
        response: { 200: releaseAnswer },
      },
    },
    async ({ body }) => ({ released: await limiter.release(body.lease).catch(notHeld(false)) }),
  );
  app.post<{ Body: RenewBody }>(
    "/v1/renew",
    {
      schema: {
        summary: "Hold a lease for another term",
        tags: ["leases"],
        body: renewBody,
        response: { 200: renewAnswer },
      },
    },
    async ({ body }) => {
      const expiresAfterMs = await limiter.renew(body.lease).catch(notHeld(0));
      return { renewed: expiresAfterMs > 0, expiresAfterMs };
    },
  );
  app.post<{ Body: RefundBody }>(
    "/v1/refund",
    {
      schema: {
        summary: "Give back what the request with this id was charged, once",
        tags: ["leases"],
        body: refundBody,
        response: { 200: refundAnswer },
      },
    },
    async ({ body }) => ({ refunded: await limiter.refund(body.id) }),
  );
}

/** The answer about a lease that is not held, for a malformed id; other errors are thrown again. */
function notHeld<T>(answer: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof SluiceError && error.code === "invalid-request") return answer;
    throw error;
  };
}
