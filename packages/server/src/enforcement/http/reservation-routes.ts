/** Reservation routes: settle at the real cost, extend, cancel. Work on any instance, by id alone. */
import type { FastifyInstance } from "fastify";
import type { Limiter } from "sluice";
import { decisionText } from "./decision-text.js";
import { type CancelBody, cancelBody, decision, type SettleBody, settleAnswer, settleBody } from "./schemas.js";

export function registerReservationRoutes(app: FastifyInstance, { limiter }: { limiter: Limiter }): void {
  app.post<{ Body: SettleBody }>(
    "/v1/settle",
    {
      schema: {
        summary: "Charge what a reserved request really cost; the same answer again, and nothing charged twice",
        tags: ["reservations"],
        body: settleBody,
        response: { 200: settleAnswer },
      },
    },
    async ({ body }) => await limiter.settle(body.reservation, body.attributes),
  );
  app.post<{ Body: SettleBody }>(
    "/v1/extend",
    {
      schema: {
        summary: "Hold more for a reservation, up to these costs in all, and begin its term anew",
        tags: ["reservations"],
        body: settleBody,
        response: { 200: decision },
      },
      serializerCompiler: () => decisionText as (made: unknown) => string,
    },
    async ({ body }) => await limiter.extend(body.reservation, body.attributes),
  );
  app.post<{ Body: CancelBody }>(
    "/v1/cancel",
    {
      schema: {
        summary: "Settle a reservation at 0: the work was not done",
        tags: ["reservations"],
        body: cancelBody,
        response: { 200: settleAnswer },
      },
    },
    async ({ body }) => await limiter.cancel(body.reservation),
  );
}
