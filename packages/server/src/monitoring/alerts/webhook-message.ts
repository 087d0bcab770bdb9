/** A webhook message: the body in its format, and the signature. Pure. */
import { createHmac } from "node:crypto";
import type { Webhook } from "../../settings/accepted-settings.js";
import type { AlertView } from "../views/alerts.js";

export interface AlertMessage extends AlertView {
  /** The same for the same problem, even if several instances report it: lets receivers deduplicate. */
  readonly subject: string;
  /** Why it is sent, unless it is a start or an end. */
  readonly event?: "worse" | "reminder" | "acknowledged" | "test";
  /** Set for a reminder. */
  readonly sentAtMs?: number;
}

const STANDARD_SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;

export function messageBody(alert: AlertMessage, format: Webhook["format"]): string {
  if (format === "slack") return JSON.stringify({ text: slackText(alert) });
  const { id, subject, kind, rule, state, severity, summary, startedAtMs, endedAtMs, value, expected } = alert;
  const { condition, event, acknowledged } = alert;
  const told = {
    ...{ id, subject, kind, rule, condition, state, event, severity, summary },
    ...{ startedAtMs, endedAtMs, value, expected, acknowledged },
  };
  return JSON.stringify({ type: "sluice.alert", alert: told });
}

/**
 * Standard Webhooks: the HMAC-SHA256 of `ID.SECONDS.BODY`. The signed time prevents replays. All attempts at a message share the id. A
 * secret of the form `whsec_BASE64` is decoded; any other is used as its bytes.
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
    // The legacy header of older versions, kept for one more release.
    "sluice-signature": `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`,
  };
}

/** Shared by all attempts at a message: an alert fires once and is resolved once. */
export function messageId({ id, state, event, sentAtMs }: AlertMessage): string {
  const parts = [id, state, event, event === "reminder" ? sentAtMs : undefined];
  return parts.filter((part) => part !== undefined).join("-");
}

function slackText(alert: AlertMessage): string {
  return `*${titleOf(alert)}* ${escapeSlack(alert.summary)}${escapeSlack(lengthOf(alert))}`;
}

/** For example `CRITICAL: store-memory`, `Resolved: unusual-rate`. */
export function titleOf({ state, severity, kind, event, condition }: AlertMessage): string {
  const how = state === "resolved" ? "Resolved" : severity === "critical" ? "CRITICAL" : "Warning";
  const words = { worse: how, test: "Test", reminder: `${how}, still firing`, acknowledged: "Acknowledged" };
  return `${event === undefined ? how : words[event]}: ${condition ?? kind}`;
}

/** How long it lasted, or who acknowledged it. */
export function lengthOf({ startedAtMs, endedAtMs, acknowledged, event }: AlertMessage): string {
  if (endedAtMs !== undefined) return ` (after ${Math.max(1, Math.round((endedAtMs - startedAtMs) / 60_000))} min)`;
  if (event !== "acknowledged" || acknowledged === undefined) return "";
  const { by, note } = acknowledged;
  return ` (by ${by}${note === undefined || note === "" ? "" : `: ${note}`})`;
}

/** Required by Slack: otherwise a rule's or key's name could mention a channel or hide a link. */
function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
