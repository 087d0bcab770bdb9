/** Blocks: set by hand, and listed. A reset lifts a block (`key-routes.ts`). */
import type { FastifyInstance } from "fastify";
import { SluiceError } from "sluice";
import { parseDuration } from "sluice/internal";
import { callerOf } from "./access.js";
import { asChecked, recordKeyChange } from "./key-routes.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { blockBody, blockedKeys, blockedQuery, blockReply } from "./schemas.js";

interface Block {
  Body: { rule: string; attributes: Record<string, string | number | boolean>; for: string };
}

interface Blocked {
  Querystring: { rule?: string };
}

export function registerBlockRoutes(app: FastifyInstance, options: AdministrationOptions): void {
  const { limiter, region } = options;

  app.post<Block>(
    "/keys/block",
    describeRoute({
      role: "editor",
      summary: "Blocks a key of a rule with blockFor; /keys/reset lifts a block",
      body: blockBody,
      reply: blockReply,
      errors: ["unknown-rule", "store-unavailable"],
    }),
    async (request) => {
      const { rule, attributes, for: length } = request.body;
      const lengthMs = parseDuration(length);
      if (lengthMs === undefined) {
        throw new SluiceError(
          "invalid-request",
          `for: expected a duration such as "1h", got ${JSON.stringify(length)}`,
        );
      }
      await limiter.block(rule, asChecked(attributes, region), lengthMs);
      await recordKeyChange(options, callerOf(request).name, "key.block", { rule, attributes, for: length });
      return { blocked: true, blockedForMs: lengthMs };
    },
  );

  const { readBlockedKeys } = options;
  if (readBlockedKeys === undefined) return;
  app.get<Blocked>(
    "/keys/blocked",
    describeRoute({
      role: "viewer",
      summary: "The keys that are blocked now",
      querystring: blockedQuery,
      reply: blockedKeys,
      errors: ["store-unavailable"],
    }),
    ({ query: { rule } }) => readBlockedKeys(rule),
  );
}
