/** Alerts: those that fire, those that are over, and how sending them went. */
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import type { AlertsView } from "../monitoring/views.js";
import { describeRoute } from "./route.js";

const alertsView = Type.Unsafe<AlertsView>({ type: "object", description: "See docs/alerts.md." });

export function registerAlertRoutes(app: FastifyInstance, readAlerts: () => Promise<AlertsView>): void {
  app.get(
    "/alerts",
    describeRoute({ role: "viewer", summary: "Alerts that fire, and those of the last eight days", reply: alertsView }),
    (_request, reply) => readAlerts().then((view) => reply.send(view)),
  );
}
