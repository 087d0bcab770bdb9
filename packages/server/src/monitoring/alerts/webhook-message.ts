/** A webhook's message: the body in its format, and a signature of sender and time. Pure. */
import { createHmac } from "node:crypto";
import type { Webhook } from "../../settings/accepted-settings.js";
import type { AlertView } from "../views.js";

export interface AlertMessage extends AlertView {
  /** The same for the same trouble, also where several instances speak of it: what a receiver can de-duplicate by. */
  readonly subject: string;
}

const STANDARD_SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;

export function messageBody(alert: AlertMessage, format: Webhook["format"]): string {
  if (format === "slack") return JSON.stringify({ text: slackText(alert) });
  const { id, subject, kind, rule, state, severity, summary, startedAtMs, endedAtMs, value, expected } = alert;
  const told = { id, subject, kind, rule, state, severity, summary, startedAtMs, endedAtMs, value, expected };
  return JSON.stringify({ type: "sluice.alert", alert: told });
}

/**
 * Standard Webhooks: the HMAC-SHA256 of `ID.SECONDS.BODY`. The time is signed too, so that an old message cannot be sent again. The id is the
 * same for every attempt at a message. A secret of the form `whsec_BASE64` is decoded; any other is taken as its bytes.
 */
export function signatureHeaders(
  body: string,
  { secret, id, atMs }: { secret: string; id: string; atMs: number },
): Record<string, string> {
  const seconds = Math.floor(atMs / 1_000);
  const encoded = STANDARD_SECRET.exec(secret)?.[1];
  const key = encoded === undefined ? secret : Buffer.from(encoded, "base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`,
    // The header of older versions, for one version more.
    "sluice-signature": `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`,
  };
}

/** The same for every attempt at a message: one alert fires once and is resolved once. */
export function messageId({ id, state }: Pick<AlertMessage, "id" | "state">): string {
  return `${id}-${state}`;
}

function slackText({ state, severity, kind, summary, startedAtMs, endedAtMs }: AlertMessage): string {
  const what = state === "resolved" ? "Resolved" : severity === "critical" ? "CRITICAL" : "Warning";
  const minutes =
    endedAtMs === undefined ? "" : ` (after ${Math.max(1, Math.round((endedAtMs - startedAtMs) / 60_000))} min)`;
  return `*${what}: ${kind}* ${escapeSlack(summary)}${minutes}`;
}

/** As Slack asks for: without it a rule's or a key's name could mention a channel or hide a link. */
function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
