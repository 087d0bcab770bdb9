/** Forgetting what a rule has counted for one key. The key is spelled from literal values: never a pattern, never a scan. */
import type { FastifyInstance } from "fastify";
import { callerOf } from "./access.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { resetBody, resetReply } from "./schemas.js";

interface Reset {
  Body: { rule: string; attributes: Record<string, string | number | boolean> };
}

export function registerKeyRoutes(app: FastifyInstance, { limiter, configuration, log }: AdministrationOptions): void {
  app.post<Reset>(
    "/keys/reset",
    describeRoute({ role: "editor", summary: "Forgets a key's state", body: resetBody, reply: resetReply }),
    async (request) => {
      const { rule, attributes } = request.body;
      await limiter.reset(rule, attributes);
      const actor = callerOf(request).name;
      // The reset stands even if it cannot be recorded; an operator in an outage must be able to free a customer.
      await configuration.repository
        ?.record({ actor, action: "key.reset", target: rule, details: { attributes } })
        .catch((error) => log.warn("a reset could not be recorded", { actor, rule, error: String(error) }));
      return { reset: true };
    },
  );
}
