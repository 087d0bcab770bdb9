/** Alerts: listing, acknowledging and silencing them; the policy that decides which fire and where they are sent. */
import type { FastifyInstance } from "fastify";
import { SluiceError } from "sluice";
import { parseDuration } from "sluice/internal";
import type { AlertPolicies, PolicyInForce, SilenceMatch } from "../configuration/alert-policies.js";
import { secretFields } from "../configuration/alert-policy.js";
import { ServiceError } from "../errors.js";
import type { AlertsView, AlertView } from "../monitoring/views/alerts.js";
import { ownField } from "../own-fields.js";
import { callerOf } from "./access.js";
import {
  acknowledgeBody,
  alertId,
  alertPolicy,
  alertPolicyBody,
  alertsView,
  alertView,
  policyQuery,
  receiverId,
  receiverTest,
  silence,
  silenceBody,
  silenceId,
  silenceList,
} from "./alert-schemas.js";
import { type AdministrationOptions, describeRoute, ifMatchOf, tagged } from "./route.js";
import { guardHeaders } from "./schemas.js";

/** The subset of alerts that the routes use. */
export interface AlertDesk {
  read(): Promise<AlertsView>;
  /** Undefined if no such alert is firing. */
  acknowledge(id: string, given: { by: string; atMs: number; note?: string }): Promise<AlertView | undefined>;
  /** Undefined if there is no such receiver. */
  test(receiver: string, by: string): Promise<{ delivered: boolean; error?: string } | undefined>;
}

export function registerAlertRoutes(app: FastifyInstance, options: AdministrationOptions, desk: AlertDesk): void {
  app.get(
    "/alerts",
    describeRoute({ role: "viewer", summary: "Alerts that fire, and those of the last eight days", reply: alertsView }),
    (_request, reply) => desk.read().then((view) => reply.send(view)),
  );

  app.post<{ Params: { id: string }; Body: { note?: string } }>(
    "/alerts/:id/acknowledge",
    describeRoute({
      role: "editor",
      summary: "Notes who looks after a firing alert; it is not repeated any more",
      params: alertId,
      body: acknowledgeBody,
      reply: alertView,
      errors: ["unknown-alert"],
    }),
    async (request, reply) => {
      const { id } = request.params;
      const { note } = request.body;
      const by = callerOf(request).name;
      const given = { by, atMs: Date.now(), ...(note !== undefined && note !== "" && { note }) };
      const alert = await desk.acknowledge(id, given);
      if (alert === undefined)
        throw new ServiceError("unknown-alert", `no alert ${JSON.stringify(id)} fires: it is over, or never was`);
      const details = { kind: alert.kind, summary: alert.summary, ...(note !== undefined && { note }) };
      await options.configuration.repository
        ?.record({ actor: by, action: "alert.acknowledged", target: alert.rule ?? alert.kind, details })
        .catch((error) => options.log.warn("an acknowledgement could not be recorded", { error: String(error) }));
      return reply.send(alert);
    },
  );
  if (options.alertPolicies === undefined) return;
  registerSilenceRoutes(app, options.alertPolicies);
  registerPolicyRoutes(app, { policies: options.alertPolicies, desk, options });
}

/** An empty match matches every alert: a forgotten field must not silence them all. */
function mustName(match: SilenceMatch, all: boolean): void {
  const isEmpty = Object.keys(match).length === 0;
  if (isEmpty === all) return;
  const got = isEmpty ? "nothing" : "both";
  throw new SluiceError(
    "invalid-request",
    `match: expected rule, tag or kind, or all: true for every alert, got ${got}`,
  );
}

function registerSilenceRoutes(app: FastifyInstance, policies: AlertPolicies): void {
  app.get(
    "/alerts/silences",
    describeRoute({ role: "viewer", summary: "Silences that are not over", reply: silenceList }),
    async () => ({ silences: (await policies.inForce()).silences }),
  );

  app.post<{ Body: { match?: SilenceMatch; all?: boolean; for: string; reason?: string } }>(
    "/alerts/silences",
    describeRoute({
      role: "editor",
      summary: "Holds back the messages of alerts that fit, until it ends",
      body: silenceBody,
      reply: silence,
      status: 201,
    }),
    async (request, reply) => {
      const { match = {}, all = false, for: length, reason = "" } = request.body;
      mustName(match, all);
      const forMs = parseDuration(length);
      if (forMs === undefined)
        throw new SluiceError(
          "invalid-request",
          `for: expected a duration such as "2h", got ${JSON.stringify(length)}`,
        );
      const made = await policies.silence({ match, reason, forMs, author: callerOf(request).name });
      return reply.code(201).send(made);
    },
  );

  app.delete<{ Params: { id: string } }>(
    "/alerts/silences/:id",
    describeRoute({
      role: "editor",
      summary: "Ends a silence; alerts that it held back and that still fire are sent",
      params: silenceId,
      status: 204,
      isChange: true,
      errors: ["unknown-silence"],
    }),
    async (request, reply) => {
      await policies.endSilence(request.params.id, callerOf(request).name);
      return reply.code(204).send();
    },
  );
}

function registerPolicyRoutes(
  app: FastifyInstance,
  { policies, desk, options }: { policies: AlertPolicies; desk: AlertDesk; options: AdministrationOptions },
): void {
  app.get(
    "/alerts/policy",
    describeRoute({
      role: "viewer",
      summary: "Thresholds, tuned detectors, receivers without their secrets, and routes",
      reply: alertPolicy,
      errors: ["rules-from-file"],
    }),
    async (_request, reply) => {
      const held = await policies.newest();
      return tagged(reply, held.version).send(shownPolicy(held));
    },
  );

  app.put<{ Querystring: { message?: string } }>(
    "/alerts/policy",
    describeRoute({
      role: "admin",
      summary: "Sets the whole alert policy; a receiver's secret that is left out stays as it was",
      querystring: policyQuery,
      headers: guardHeaders,
      body: alertPolicyBody,
      reply: alertPolicy,
    }),
    async (request, reply) => {
      const held = await policies.change({
        author: callerOf(request).name,
        message: request.query.message,
        ifMatch: ifMatchOf(request),
        document: request.body,
      });
      return tagged(reply, held.version).send(shownPolicy(held));
    },
  );

  app.post<{ Params: { id: string } }>(
    "/alerts/receivers/:id/test",
    describeRoute({
      role: "admin",
      summary: "Sends a test message to a receiver, once, and tells how that went",
      params: receiverId,
      reply: receiverTest,
      isChange: true,
      errors: ["unknown-receiver"],
    }),
    async (request) => {
      const { id } = request.params;
      const by = callerOf(request).name;
      const result = await desk.test(id, by);
      if (result === undefined)
        throw new ServiceError("unknown-receiver", `there is no receiver ${JSON.stringify(id)}`);
      await options.configuration.repository
        ?.record({ actor: by, action: "alerts.tested", target: id, details: { ...result } })
        .catch((error) => options.log.warn("a test message could not be recorded", { error: String(error) }));
      return result;
    },
  );
}

/** Secrets are listed by name only; of a URL, only scheme and host are shown. */
function shownPolicy({ version, policy, secrets }: PolicyInForce) {
  const receivers = policy.receivers.map((receiver) => {
    const kept = ownField(secrets, receiver.id) ?? {};
    const hidden = Object.keys(secretFields[receiver.type]).filter((field) => kept[field] !== undefined);
    const address = kept.url === undefined ? undefined : `${new URL(kept.url).origin}/…`;
    return { ...receiver, ...(address !== undefined && { address }), secrets: hidden };
  });
  return { version, ...policy, receivers };
}
