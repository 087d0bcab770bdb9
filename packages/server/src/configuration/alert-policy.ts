/**
 * The alert policy: thresholds of one's own, tuned detectors, receivers, and routes between them. One document, versioned like the rules.
 * In: a document as it was sent. Out: the policy with its secrets taken out, or every mistake with its path. Pure.
 */
import type { Mistake } from "sluice";
import { ownField } from "../own-fields.js";
import { mistakesOf } from "./alert-policy-fields.js";
import type { ReceiverSecrets } from "./repository/alert-repository.js";

type AlertSeverity = "warning" | "critical";

/** A rule, every rule with a tag, or, where both are absent, all requests together. */
export interface AlertScope {
  readonly rule?: string;
  readonly tag?: string;
}

type AlertMetric = "checks" | "refused" | "refused-share";

/** A threshold of one's own: fires where each of the last minutes lies beyond it. */
export interface AlertCondition extends AlertScope {
  readonly id: string;
  /** A minute; `refused-share` from 0 to 1. */
  readonly metric: AlertMetric;
  readonly above?: number;
  readonly below?: number;
  /** Whole minutes, such as `3m`. Default `3m`. */
  readonly for?: string;
  readonly severity?: AlertSeverity;
}

const tunedKinds = [
  "unusual-rate",
  "refusal-share",
  "new-heavy-key",
  "store-degraded",
  "store-memory",
  "propagation-stuck",
] as const;

/** A built-in detector, tuned or off: for a rule, for the rules with a tag, or for all. The first that fits wins. */
export interface DetectorTuning extends AlertScope {
  readonly kind: (typeof tunedKinds)[number];
  readonly mode?: "on" | "off";
  /** `unusual-rate`: times the usual; `refusal-share`: points above it, from 0 to 1; `new-heavy-key`: the key's share of its rule. */
  readonly above?: number;
  /** `unusual-rate` alone: the share of the usual that is too little. */
  readonly below?: number;
  readonly severity?: AlertSeverity;
}

const receiverTypes = ["webhook", "slack", "pagerduty", "opsgenie", "email"] as const;

export interface AlertReceiver {
  readonly id: string;
  readonly type: (typeof receiverTypes)[number];
  /** `pagerduty`, `opsgenie`: another address than the vendor's own, such as that of the EU. */
  readonly url?: string;
  /** `email`. */
  readonly to?: readonly string[];
}

export interface AlertMatch extends AlertScope {
  readonly kind?: string;
  readonly severity?: AlertSeverity;
}

/** An alert goes to the receivers of every route that it fits. Without routes every receiver gets every alert. */
interface AlertRoute {
  readonly match?: AlertMatch;
  readonly receivers: readonly string[];
  /** Sends again after so long while the alert fires and nobody has acknowledged it. */
  readonly repeat?: string;
}

export interface AlertPolicy {
  readonly conditions: readonly AlertCondition[];
  readonly detectors: readonly DetectorTuning[];
  readonly receivers: readonly AlertReceiver[];
  readonly routes: readonly AlertRoute[];
}

export const emptyPolicy: AlertPolicy = { conditions: [], detectors: [], receivers: [], routes: [] };

/** Fields that are taken out of the document and never shown again; `true`: the receiver cannot do without. */
export const secretFields: Readonly<Record<AlertReceiver["type"], Readonly<Record<string, boolean>>>> = {
  webhook: { url: true, secret: false },
  slack: { url: true },
  pagerduty: { key: true },
  opsgenie: { key: true },
  email: {},
};

interface Read {
  readonly policy: AlertPolicy;
  readonly secrets: ReceiverSecrets;
}

/** `before`: what is kept of secrets that the document does not name again. */
export function readAlertPolicy(document: unknown, before: Read): Read | { readonly mistakes: readonly Mistake[] } {
  const mistakes = mistakesOf(document);
  if (mistakes.length > 0) return { mistakes };
  const given = document as Partial<AlertPolicy>;
  const secrets: Record<string, Record<string, string>> = {};
  const missing: Mistake[] = [];
  const receivers = (given.receivers ?? []).map((receiver, i): AlertReceiver => {
    const { kept, own, absent } = splitReceiver(receiver, before);
    for (const field of absent) missing.push({ path: `receivers[${i}].${field}`, message: whatIsMissing(field) });
    secrets[own.id] = kept;
    return own;
  });
  if (missing.length > 0) return { mistakes: missing };
  const { conditions = [], detectors = [], routes = [] } = given;
  return { policy: { conditions, detectors, receivers, routes }, secrets };
}

function splitReceiver(receiver: AlertReceiver, before: Read) {
  const fields = secretFields[receiver.type];
  const given = receiver as AlertReceiver & Readonly<Record<string, unknown>>;
  const { id, type, to } = receiver;
  const url = "url" in fields ? undefined : receiver.url;
  const was = before.policy.receivers.find((one) => one.id === id);
  // A stored key stays with the address that it was given for: a changed address must not be sent the old key.
  const stored = was?.type === type && was.url === url ? ownField(before.secrets, id) : undefined;
  const kept: Record<string, string> = {};
  const absent: string[] = [];
  for (const [field, isNeeded] of Object.entries(fields)) {
    const value = (given[field] as string | undefined) ?? stored?.[field];
    if (value !== undefined) kept[field] = value;
    else if (isNeeded) absent.push(field);
  }
  const own: AlertReceiver = { id, type, ...(url !== undefined && { url }), ...(to !== undefined && { to }) };
  return { kept, own, absent };
}

function whatIsMissing(field: string): string {
  return field === "key" ? "expected the key (a stored one stays only with its address)" : "expected a URL";
}
