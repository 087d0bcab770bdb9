/**
 * Messages in the formats of PagerDuty (Events API v2), Opsgenie (Alert API) and mail. The alert's id is the deduplication key by which a
 * vendor recognises the incident: it is triggered, acknowledged and resolved once. Pure.
 */
import { type AlertMessage, lengthOf, titleOf } from "./webhook-message.js";

/** The vendors' limits. */
const LONGEST = { pagerDutySummary: 1_024, opsgenieMessage: 130, opsgenieText: 15_000, subject: 200 } as const;

const vendorUrls = {
  pagerduty: "https://events.pagerduty.com/v2/enqueue",
  opsgenie: "https://api.opsgenie.com",
} as const;

interface Post {
  readonly url: URL;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** https://developer.pagerduty.com/docs/send-alert-event */
export function pagerDutyPost(
  alert: AlertMessage,
  {
    key,
    url = vendorUrls.pagerduty,
    consoleUrl,
  }: { key: string; url?: string | undefined; consoleUrl?: string | undefined },
): Post {
  const action = alert.state === "resolved" ? "resolve" : alert.event === "acknowledged" ? "acknowledge" : "trigger";
  const common = { routing_key: key, event_action: action, dedup_key: `sluice-${alert.id}` };
  const page = pageOf(alert, consoleUrl);
  const body =
    action !== "trigger"
      ? common
      : {
          ...common,
          client: "Sluice",
          ...(page !== undefined && { client_url: page }),
          payload: {
            summary: clipped(`${titleOf(alert)} ${alert.summary}`, LONGEST.pagerDutySummary),
            source: "sluice",
            severity: alert.severity,
            timestamp: new Date(alert.startedAtMs).toISOString(),
            ...(alert.rule !== undefined && { component: alert.rule }),
            class: alert.condition ?? alert.kind,
            custom_details: detailsOf(alert),
          },
        };
  return { url: new URL(url), body: JSON.stringify(body), headers: {} };
}

/** https://docs.opsgenie.com/docs/alert-api */
export function opsgeniePost(
  alert: AlertMessage,
  {
    key,
    url = vendorUrls.opsgenie,
    consoleUrl,
  }: { key: string; url?: string | undefined; consoleUrl?: string | undefined },
): Post {
  const alias = `sluice-${alert.id}`;
  const path = (rest: string): URL => new URL(`/v2/alerts${rest}`, url);
  const headers = { authorization: `GenieKey ${key}` };
  const note = `${titleOf(alert)} ${alert.summary}${lengthOf(alert)}`;
  const spoken = { source: "sluice", note: clipped(note, LONGEST.opsgenieText) };
  if (alert.state === "resolved")
    return { url: path(`/${alias}/close?identifierType=alias`), body: JSON.stringify(spoken), headers };
  if (alert.event === "acknowledged") {
    const user = alert.acknowledged?.by ?? "";
    return {
      url: path(`/${alias}/acknowledge?identifierType=alias`),
      body: JSON.stringify({ ...spoken, user: clipped(user, 100) }),
      headers,
    };
  }
  const page = pageOf(alert, consoleUrl);
  const body = {
    message: clipped(`${titleOf(alert)} ${alert.summary}`, LONGEST.opsgenieMessage),
    alias,
    description: clipped(page === undefined ? alert.summary : `${alert.summary}\n${page}`, LONGEST.opsgenieText),
    tags: ["sluice", alert.kind],
    details: detailsOf(alert),
    ...(alert.rule !== undefined && { entity: alert.rule }),
    source: "sluice",
    priority: alert.severity === "critical" ? "P1" : "P3",
  };
  return { url: path(""), body: JSON.stringify(body), headers };
}

export function mailOf(
  alert: AlertMessage,
  { consoleUrl }: { consoleUrl?: string | undefined },
): { subject: string; text: string; messageKey: string } {
  const page = pageOf(alert, consoleUrl);
  const lines = [
    `${titleOf(alert)}${lengthOf(alert)}`,
    "",
    alert.summary,
    "",
    ...Object.entries(detailsOf(alert)).map(([name, value]) => `${name}: ${value}`),
    ...(page === undefined ? [] : ["", page]),
  ];
  return {
    subject: clipped(oneLine(`[Sluice] ${titleOf(alert)} ${alert.summary}`), LONGEST.subject),
    text: `${lines.join("\n")}\n`,
    // Makes mail clients thread all messages about one alert.
    messageKey: alert.id,
  };
}

/** Strings only: Opsgenie accepts nothing else. */
function detailsOf({ id, kind, rule, condition, severity, startedAtMs, value, expected }: AlertMessage) {
  const details = {
    id,
    kind,
    rule,
    condition,
    severity,
    startedAt: new Date(startedAtMs).toISOString(),
    value,
    expected,
  };
  return Object.fromEntries(
    Object.entries(details).flatMap(([name, detail]) => (detail === undefined ? [] : [[name, String(detail)]])),
  );
}

/** The page to link to: the rule's, otherwise the alerts page. */
function pageOf({ rule }: AlertMessage, consoleUrl: string | undefined): string | undefined {
  if (consoleUrl === undefined) return undefined;
  return new URL(rule === undefined ? "alerts" : `rules/${encodeURIComponent(rule)}`, `${consoleUrl}/`).href;
}

function oneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ");
}

function clipped(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
