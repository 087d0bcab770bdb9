/** The regions that share the global store: traffic, units, round trip, and whether they are cut off. */
import type { FastifyInstance } from "fastify";
import { ServiceError } from "../errors.js";
import { type AdministrationOptions, describeRoute } from "./route.js";
import { regionsView } from "./stats-schemas.js";

export function registerRegionRoutes(app: FastifyInstance, { readRegions }: AdministrationOptions): void {
  app.get(
    "/regions",
    describeRoute({
      role: "viewer",
      summary: "The regions: traffic, units held, round trip to the global store, cut off or not",
      reply: regionsView,
      errors: ["monitoring-off"],
    }),
    async () => {
      if (readRegions === undefined)
        throw new ServiceError("monitoring-off", "this service does not count its traffic");
      return readRegions();
    },
  );
}
