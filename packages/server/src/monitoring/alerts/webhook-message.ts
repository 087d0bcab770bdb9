/** What a webhook gets: the body in its format, and a signature that shows who sent it and when. Pure. */
import { createHmac } from "node:crypto";
import type { Webhook } from "../../accepted-settings.js";
import type { AlertView } from "../views.js";

export interface AlertMessage extends AlertView {
  /** The same for the same trouble, also where several instances speak of it: what a receiver can de-duplicate by. */
  readonly subject: string;
}

export const SIGNATURE_HEADER = "sluice-signature";

export function messageBody(alert: AlertMessage, format: Webhook["format"]): string {
  if (format === "slack") return JSON.stringify({ text: slackText(alert) });
  const { id, subject, kind, rule, state, severity, summary, startedAtMs, endedAtMs, value, expected } = alert;
  const told = { id, subject, kind, rule, state, severity, summary, startedAtMs, endedAtMs, value, expected };
  return JSON.stringify({ type: "sluice.alert", alert: told });
}

/** `t=SECONDS,v1=HEX`: the HMAC-SHA256 of `SECONDS.BODY`. The time is signed too, so that an old message cannot be sent again. */
export function signature(body: string, { secret, atMs }: { secret: string; atMs: number }): string {
  const seconds = Math.floor(atMs / 1_000);
  return `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`;
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
