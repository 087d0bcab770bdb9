/**
 * Keys: shows what the rules would decide for one, without charging it, and resets it. Keys are built from literal values: never a pattern,
 * never a scan.
 */
import type { FastifyInstance } from "fastify";
import type { Attributes } from "sluice";
import { callerOf } from "./access.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { explainBody, explainReply, resetBody, resetReply } from "./schemas.js";

interface Reset {
  Body: { rule: string; attributes: Record<string, string | number | boolean> };
}

interface Explain {
  Body: { attributes: Record<string, string | number | boolean>; cost?: number };
}

export function registerKeyRoutes(app: FastifyInstance, options: AdministrationOptions): void {
  const { limiter, region } = options;

  app.post<Explain>(
    "/keys/explain",
    describeRoute({
      role: "viewer",
      summary: "Which rules apply to a request and why, their state, and the next time it passes; charges nothing",
      body: explainBody,
      reply: explainReply,
      errors: ["too-complex"],
    }),
    async ({ body: { attributes, cost } }) =>
      await limiter.explain(asChecked(attributes, region), cost === undefined ? {} : { cost }),
  );

  app.post<Reset>(
    "/keys/reset",
    describeRoute({
      role: "editor",
      summary: "Forgets a key's state",
      body: resetBody,
      reply: resetReply,
      errors: ["unknown-rule", "store-unavailable"],
    }),
    async (request) => {
      const { rule, attributes } = request.body;
      await limiter.reset(rule, asChecked(attributes, region));
      await recordKeyChange(options, callerOf(request).name, "key.reset", { rule, attributes });
      return { reset: true };
    },
  );
}

/** As a check sees them: `--region` is the region of attributes that name none. */
export function asChecked(attributes: Attributes, region: string | undefined): Attributes {
  return { ...(region !== undefined && { region }), ...attributes };
}

/** The change stands even if it cannot be audited: in an outage, an operator must still be able to unblock a customer. */
export async function recordKeyChange(
  { configuration, log }: AdministrationOptions,
  actor: string,
  action: "key.reset" | "key.block",
  { rule, ...details }: { rule: string } & Record<string, unknown>,
): Promise<void> {
  await configuration.repository
    ?.record({ actor, action, target: rule, details })
    .catch((error) => log.warn(`a ${action} could not be recorded`, { actor, rule, error: String(error) }));
}
