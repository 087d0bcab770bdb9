/**
 * Requests and responses about alerts. The alert policy is validated by `configuration/alert-policy-fields.ts`, which can express more than
 * a schema.
 */
import Type from "typebox";
import type { AlertPolicy } from "../configuration/alert-policy.js";
import type { AlertsView, AlertView } from "../monitoring/views/alerts.js";

const exact = { additionalProperties: false } as const;
const text = Type.String();
const name = Type.String({ minLength: 1, maxLength: 64 });

export const alertsView = Type.Unsafe<AlertsView>({
  type: "object",
  title: "Alerts",
  description: "See docs/alerts.md.",
});
export const alertView = Type.Unsafe<AlertView>({ type: "object", title: "Alert", description: "See docs/alerts.md." });
export const alertId = Type.Object({ id: Type.String({ maxLength: 64 }) });
export const receiverId = Type.Object({ id: Type.String({ maxLength: 64 }) });
export const silenceId = Type.Object({ id: Type.String({ maxLength: 64 }) });
export const acknowledgeBody = Type.Object(
  { note: Type.Optional(Type.String({ maxLength: 500 })) },
  { ...exact, title: "Acknowledge" },
);

const match = Type.Object(
  { rule: Type.Optional(name), tag: Type.Optional(name), kind: Type.Optional(name) },
  { ...exact, description: "All must fit; {} fits every alert. `kind` may be a condition's id." },
);
export const silenceBody = Type.Object(
  {
    match: Type.Optional(match),
    all: Type.Optional(Type.Boolean({ description: "true: every alert. Without it, `match` must name something." })),
    for: Type.String({ maxLength: 20, description: "A duration such as 2h, at most 90 days." }),
    reason: Type.Optional(Type.String({ maxLength: 500 })),
  },
  { ...exact, title: "SilenceRequest" },
);
export const silence = Type.Object(
  { id: text, match, reason: text, author: text, createdAtMs: Type.Integer(), endsAtMs: Type.Integer() },
  { title: "Silence" },
);
export const silenceList = Type.Object({ silences: Type.Array(silence) }, { title: "SilenceList" });
export const policyQuery = Type.Object(
  { message: Type.Optional(Type.String({ maxLength: 1_000, description: "Why; kept with the version." })) },
  exact,
);

const lists = {
  conditions: { type: "array", items: { type: "object" }, description: "Thresholds of one's own." },
  detectors: { type: "array", items: { type: "object" }, description: "Built-in detectors, tuned or off." },
  receivers: { type: "array", items: { type: "object" } },
  routes: { type: "array", items: { type: "object" } },
};
export const alertPolicy = Type.Unsafe<AlertPolicy & { version: number }>({
  type: "object",
  title: "AlertPolicy",
  description: "See docs/alerts.md. Secrets of receivers are named in `secrets`, never shown.",
  properties: { version: { type: "integer" }, ...lists },
});
export const alertPolicyBody = Type.Unsafe<unknown>({
  type: "object",
  title: "AlertPolicyRequest",
  description: "See docs/alerts.md.",
  properties: { version: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER }, ...lists },
});
export const receiverTest = Type.Object(
  { delivered: Type.Boolean(), error: Type.Optional(text) },
  { title: "ReceiverTest" },
);
